use std::ffi::{CStr, CString};
use std::fmt;

use sardonyx_sys as sys;

/// What went wrong, for programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Kind {
    InvalidModel,
    InvalidArgument,
    NotImplemented,
    ProviderUnavailable,
    OutOfMemory,
    Io,
    RuntimeFailure,
    Cancelled,
    DeadlineExceeded,
    Internal,
}

/// The message says what, where, what was expected and received, and how to mend it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    kind: Kind,
    message: String,
}

pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    pub fn kind(&self) -> Kind {
        self.kind
    }

    pub fn message(&self) -> &str {
        &self.message
    }

    pub(crate) fn argument(message: impl Into<String>) -> Self {
        Error { kind: Kind::InvalidArgument, message: message.into() }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {}

fn kind_of(status: sys::sdx_status) -> Kind {
    match status {
        sys::SDX_INVALID_MODEL => Kind::InvalidModel,
        sys::SDX_INVALID_ARGUMENT => Kind::InvalidArgument,
        sys::SDX_NOT_IMPLEMENTED => Kind::NotImplemented,
        sys::SDX_PROVIDER_UNAVAILABLE => Kind::ProviderUnavailable,
        sys::SDX_OUT_OF_MEMORY => Kind::OutOfMemory,
        sys::SDX_IO => Kind::Io,
        sys::SDX_RUNTIME_FAILURE => Kind::RuntimeFailure,
        sys::SDX_CANCELLED => Kind::Cancelled,
        sys::SDX_DEADLINE_EXCEEDED => Kind::DeadlineExceeded,
        _ => Kind::Internal,
    }
}

/// To be called right after the function that returned `status`, on the same thread.
pub(crate) fn check(status: sys::sdx_status) -> Result<()> {
    if status == sys::SDX_OK {
        return Ok(());
    }
    // SAFETY: a text of this thread, which stays until its next call.
    let message = unsafe { CStr::from_ptr(sys::sdx_last_error()) }.to_string_lossy().into_owned();
    Err(Error { kind: kind_of(status), message })
}

pub(crate) fn c_text(text: &str) -> Result<CString> {
    CString::new(text).map_err(|_| Error::argument(format!("{:?} has a NUL inside", text)))
}
