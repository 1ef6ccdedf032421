//! Prints what a model takes and gives: `cargo run --example model -- model.onnx`

use sardonyx::{Options, Session};

fn main() -> sardonyx::Result<()> {
    let path = std::env::args().nth(1).unwrap_or_else(|| "model.onnx".to_string());
    let session = Session::open(path, &Options::new())?;
    for (what, values) in [("input", session.inputs()), ("output", session.outputs())] {
        for value in values {
            println!("{} {}: {:?}, shape {:?}", what, value.name, value.data_type, value.shape);
        }
    }
    Ok(())
}
