use std::ffi::CStr;
use std::os::raw::c_char;
use std::path::Path;
use std::ptr::{self, NonNull};
use std::sync::Arc;
use std::time::Duration;

use sardonyx_sys as sys;

use crate::error::{c_text, check, Error, Result};
use crate::options::Options;
use crate::tensor::{DataType, Tensor};

/// What a model declares of an input or output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ValueInfo {
    pub name: String,
    /// `DataType::UNDEFINED` for values that are not tensors.
    pub data_type: DataType,
    /// Extents, -1 where one is not fixed; `None`: not even the rank is known.
    pub shape: Option<Vec<i64>>,
}

/// A model, compiled. May be used by any number of threads at once.
pub struct Session {
    handle: NonNull<sys::sdx_session>,
    inputs: Vec<ValueInfo>,
    outputs: Vec<ValueInfo>,
}

// SAFETY: sdx.h: a session may be used by any number of threads at once. The report, which is not, is not offered.
unsafe impl Send for Session {}
unsafe impl Sync for Session {}

type CountFn = unsafe extern "C" fn(*const sys::sdx_session) -> usize;
type NameFn = unsafe extern "C" fn(*const sys::sdx_session, usize) -> *const c_char;
type TypeFn = unsafe extern "C" fn(*const sys::sdx_session, usize, *mut i64, usize, *mut i64) -> sys::sdx_dtype;

unsafe fn values(session: *const sys::sdx_session, count: CountFn, name: NameFn, of_type: TypeFn) -> Vec<ValueInfo> {
    let one = |i| {
        let mut rank = -1;
        of_type(session, i, ptr::null_mut(), 0, &mut rank);
        let mut shape = vec![-1; usize::try_from(rank).unwrap_or(0)];
        let data_type = DataType(of_type(session, i, shape.as_mut_ptr(), shape.len(), &mut rank));
        let name = CStr::from_ptr(name(session, i)).to_string_lossy().into_owned();
        ValueInfo { name, data_type, shape: if rank < 0 { None } else { Some(shape) } }
    };
    (0..count(session)).map(one).collect()
}

impl Session {
    /// Reads and compiles an `.onnx` file.
    pub fn open(path: impl AsRef<Path>, options: &Options) -> Result<Self> {
        let shown = path.as_ref();
        let text = shown.to_str().ok_or_else(|| Error::argument(format!("{:?} is not UTF-8", shown)))?;
        let path = c_text(text)?;
        let mut handle = ptr::null_mut();
        // SAFETY: path and options live until the call is over.
        check(unsafe { sys::sdx_session_open(path.as_ptr(), options.as_ptr(), &mut handle) })?;
        // SAFETY: a new object.
        Ok(unsafe { Self::from_raw(handle) })
    }

    /// The same from memory, which is copied.
    pub fn from_bytes(model: &[u8], options: &Options) -> Result<Self> {
        let mut handle = ptr::null_mut();
        // SAFETY: as above.
        check(unsafe { sys::sdx_session_from_bytes(model.as_ptr().cast(), model.len(), options.as_ptr(), &mut handle) })?;
        Ok(unsafe { Self::from_raw(handle) })
    }

    unsafe fn from_raw(handle: *mut sys::sdx_session) -> Self {
        let handle = NonNull::new(handle).expect("the library promised a session");
        let p = handle.as_ptr();
        Session {
            handle,
            inputs: values(p, sys::sdx_session_input_count, sys::sdx_session_input_name, sys::sdx_session_input_type),
            outputs: values(p, sys::sdx_session_output_count, sys::sdx_session_output_name, sys::sdx_session_output_type),
        }
    }

    pub fn inputs(&self) -> &[ValueInfo] {
        &self.inputs
    }

    pub fn outputs(&self) -> &[ValueInfo] {
        &self.outputs
    }

    /// All outputs, in the model's order.
    pub fn run(&self, inputs: &[(&str, &Tensor)]) -> Result<Vec<Tensor>> {
        self.run_with(inputs, &RunOptions::default())
    }

    pub fn run_with(&self, inputs: &[(&str, &Tensor)], options: &RunOptions) -> Result<Vec<Tensor>> {
        let texts = inputs.iter().map(|(name, _)| c_text(name)).collect::<Result<Vec<_>>>()?;
        let names: Vec<*const c_char> = texts.iter().map(|n| n.as_ptr()).collect();
        let tensors: Vec<*const sys::sdx_tensor> = inputs.iter().map(|(_, tensor)| tensor.as_ptr()).collect();
        let wanted = options.outputs.iter().map(|name| c_text(name)).collect::<Result<Vec<_>>>()?;
        let wanted_names: Vec<*const c_char> = wanted.iter().map(|n| n.as_ptr()).collect();
        let count = if wanted.is_empty() { self.outputs.len() } else { wanted.len() };
        let mut outputs = vec![ptr::null_mut(); count];
        let milliseconds = options.timeout.map_or(0, |t| i64::try_from(t.as_millis()).unwrap_or(i64::MAX).max(1));
        // SAFETY: all arrays have as many items as is said and live until the call is over.
        check(unsafe {
            sys::sdx_session_run(
                self.handle.as_ptr(),
                names.as_ptr(),
                tensors.as_ptr(),
                tensors.len(),
                if wanted.is_empty() { ptr::null() } else { wanted_names.as_ptr() },
                count,
                outputs.as_mut_ptr(),
                milliseconds,
                options.cancel.as_ref().map_or(ptr::null(), |c| c.inner.0.as_ptr() as *const _),
            )
        })?;
        // SAFETY: each is a new tensor of ours.
        Ok(outputs.into_iter().map(|t| unsafe { Tensor::from_raw(t) }).collect())
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        // SAFETY: owned, and freed once.
        unsafe { sys::sdx_session_free(self.handle.as_ptr()) }
    }
}

/// Of one run.
#[derive(Clone, Default)]
pub struct RunOptions {
    outputs: Vec<String>,
    timeout: Option<Duration>,
    cancel: Option<Cancel>,
}

impl RunOptions {
    pub fn new() -> Self {
        Self::default()
    }

    /// These outputs alone, in this order.
    pub fn outputs(mut self, names: &[&str]) -> Self {
        self.outputs = names.iter().map(|n| n.to_string()).collect();
        self
    }

    /// Ends the run with [`Kind::DeadlineExceeded`](crate::Kind) after so long.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    pub fn cancel(mut self, cancel: &Cancel) -> Self {
        self.cancel = Some(cancel.clone());
        self
    }
}

struct CancelHandle(NonNull<sys::sdx_cancel>);

// SAFETY: sdx.h: may be set from any thread.
unsafe impl Send for CancelHandle {}
unsafe impl Sync for CancelHandle {}

impl Drop for CancelHandle {
    fn drop(&mut self) {
        // SAFETY: owned, and freed once.
        unsafe { sys::sdx_cancel_free(self.0.as_ptr()) }
    }
}

/// Ends runs from another thread. Clones are the same one.
#[derive(Clone)]
pub struct Cancel {
    inner: Arc<CancelHandle>,
}

impl Cancel {
    pub fn new() -> Self {
        // SAFETY: a new object; NULL only where there is no memory at all.
        let handle = unsafe { sys::sdx_cancel_create() };
        Cancel { inner: Arc::new(CancelHandle(NonNull::new(handle).expect("no memory"))) }
    }

    /// Runs that have it end with [`Kind::Cancelled`](crate::Kind), now and from now on.
    pub fn now(&self) {
        // SAFETY: may be called from any thread.
        unsafe { sys::sdx_cancel_now(self.inner.0.as_ptr()) }
    }
}

impl Default for Cancel {
    fn default() -> Self {
        Self::new()
    }
}
