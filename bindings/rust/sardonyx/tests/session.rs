use sardonyx::{Cancel, DataType, Kind, Options, RunOptions, Session, Tensor};

fn text(field: u8, s: &str) -> Vec<u8> {
    [&[field << 3 | 2, s.len() as u8], s.as_bytes()].concat()
}
fn message(field: u8, parts: &[Vec<u8>]) -> Vec<u8> {
    let body = parts.concat();
    [&[field << 3 | 2, body.len() as u8], &body[..]].concat()
}
fn number(field: u8, value: u8) -> Vec<u8> {
    vec![field << 3, value]
}

/// y = op(x, x), of [n]: a small model, written by hand as ONNX's protocol buffers.
fn model(op: &str, inputs: usize, element: u8) -> Vec<u8> {
    let value = |field, name: &str| {
        let shape = message(2, &[message(1, &[text(2, "n")])]);
        message(field, &[text(1, name), message(2, &[message(1, &[number(1, element), shape])])])
    };
    let mut node = vec![text(1, "x"); inputs];
    node.extend([text(2, "y"), text(4, op)]);
    let graph = message(7, &[message(1, &node), text(2, "g"), value(11, "x"), value(12, "y")]);
    [number(1, 8), graph, message(8, &[number(2, 17)])].concat()
}

fn adder() -> Session {
    let options = Options::new().provider("cpu").unwrap().set("threads", "1").unwrap();
    Session::from_bytes(&model("Add", 2, 1), &options).unwrap()
}

#[test]
fn runs() {
    let session = adder();
    assert_eq!(session.inputs().len(), 1);
    assert_eq!(session.inputs()[0].name, "x");
    assert_eq!(session.inputs()[0].data_type, DataType::FLOAT32);
    assert_eq!(session.outputs()[0].shape, Some(vec![-1]));
    let x = Tensor::new(&[3], &[1.0f32, 2.0, 3.0]).unwrap();
    let outputs = session.run(&[("x", &x)]).unwrap();
    assert_eq!(outputs[0].shape(), &[3]);
    assert_eq!(outputs[0].data::<f32>().unwrap(), &[2.0, 4.0, 6.0]);
    let named = session.run_with(&[("x", &x)], &RunOptions::new().outputs(&["y"])).unwrap();
    assert_eq!(named[0].bytes().len(), 12);
}

#[test]
fn outputs_outlive_sessions_and_threads_share_one() {
    let session = adder();
    let x = Tensor::new(&[2], &[4.0f32, 5.0]).unwrap();
    let outputs: Vec<Tensor> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(|| session.run(&[("x", &x)]).unwrap().remove(0))).collect();
        threads.into_iter().map(|t| t.join().unwrap()).collect()
    });
    drop(session);
    for y in &outputs {
        assert_eq!(y.data::<f32>().unwrap(), &[8.0, 10.0]);
    }
}

#[test]
fn texts() {
    let session = Session::from_bytes(&model("Identity", 1, 8), &Options::new()).unwrap();
    let x = Tensor::strings(&[2], &["one", "zwölf"]).unwrap();
    let outputs = session.run(&[("x", &x)]).unwrap();
    assert_eq!(outputs[0].texts().unwrap(), ["one", "zwölf"]);
    assert_eq!(Tensor::strings(&[3], &["one"]).unwrap_err().kind(), Kind::InvalidArgument);
    assert_eq!(Tensor::strings(&[1], &["a\0b"]).unwrap_err().kind(), Kind::InvalidArgument);
}

#[test]
fn errors_say_what_is_wrong() {
    assert_eq!(Session::from_bytes(b"no model", &Options::new()).err().unwrap().kind(), Kind::InvalidModel);
    let missing = Session::open("/nonexistent/model.onnx", &Options::new()).err().unwrap();
    assert_eq!(missing.kind(), Kind::Io);
    assert!(missing.to_string().contains("/nonexistent/model.onnx"), "{}", missing);
    let option = Options::new().set("thread", "1").err().unwrap();
    assert!(option.message().contains("threads"), "{}", option);
    let session = adder();
    let x = Tensor::new(&[1], &[1.0f32]).unwrap();
    let unknown = session.run(&[("z", &x)]).unwrap_err();
    assert_eq!(unknown.kind(), Kind::InvalidArgument);
    assert!(x.data::<i64>().is_err());
    assert!(Tensor::new(&[2], &[1.0f32]).is_err());
    assert!(Tensor::new(&[-1], &[1.0f32]).is_err());
}

#[test]
fn cancelled_runs_end() {
    let session = adder();
    let x = Tensor::new(&[1], &[1.0f32]).unwrap();
    let cancel = Cancel::new();
    let options = RunOptions::new().cancel(&cancel);
    session.run_with(&[("x", &x)], &options).unwrap();
    cancel.now();
    assert_eq!(session.run_with(&[("x", &x)], &options).unwrap_err().kind(), Kind::Cancelled);
}

#[test]
fn scalars_and_empty_tensors() {
    let scalar = Tensor::new(&[], &[7i64]).unwrap();
    assert_eq!(scalar.shape(), &[] as &[i64]);
    assert_eq!(scalar.data::<i64>().unwrap(), &[7]);
    let empty = Tensor::new::<f32>(&[0, 3], &[]).unwrap();
    assert!(empty.is_empty());
    assert_eq!(empty.data::<f32>().unwrap(), &[] as &[f32]);
    assert_eq!(sardonyx::version().split('.').count(), 3);
}
