//! Runs ONNX models with Sardonyx: a [`Session`] over a model takes [`Tensor`]s by name and gives tensors.
//!
//! ```no_run
//! use sardonyx::{Options, Session, Tensor};
//!
//! fn main() -> sardonyx::Result<()> {
//!     let session = Session::open("model.onnx", &Options::new().set("threads", "2")?)?;
//!     let input = Tensor::new(&[1, 3], &[1.0f32, 2.0, 3.0])?;
//!     let outputs = session.run(&[("x", &input)])?;
//!     println!("{:?}", outputs[0].data::<f32>()?);
//!     Ok(())
//! }
//! ```

mod error;
mod options;
mod session;
mod tensor;

pub use error::{Error, Kind, Result};
pub use options::Options;
pub use session::{Cancel, RunOptions, Session, ValueInfo};
pub use tensor::{DataType, Element, Tensor};

use std::ffi::CStr;

/// From now on, a model file that is cut short while it is in use makes runs fail instead of ending the process by SIGBUS. Installs a
/// handler of that signal for the whole process, which passes other faults on to the handler before it.
pub fn survive_mapped_faults() {
    // SAFETY: may be called at any time, from any thread.
    unsafe { sardonyx_sys::sdx_survive_mapped_faults() }
}

/// The version of the library that this program has loaded.
pub fn version() -> String {
    // SAFETY: a text for good.
    unsafe { CStr::from_ptr(sardonyx_sys::sdx_version()) }.to_string_lossy().into_owned()
}
