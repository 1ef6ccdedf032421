use std::ptr::NonNull;

use sardonyx_sys as sys;

use crate::error::{c_text, check, Result};

/// Options of a session. All may be left out.
pub struct Options {
    handle: NonNull<sys::sdx_options>,
}

// SAFETY: the handle belongs to no thread; setters take it by value or by unique reference.
unsafe impl Send for Options {}

impl Options {
    pub fn new() -> Self {
        // SAFETY: returns a new object; NULL only where there is no memory at all.
        let handle = unsafe { sys::sdx_options_create() };
        Options { handle: NonNull::new(handle).expect("no memory for options") }
    }

    /// Any option by its name, from text: `("threads", "2")`, `("memory_limit", "512MB")`; lists and maps get one more item:
    /// `("dimensions", "batch=4")`. An unknown name or word is an error with the closest match.
    pub fn set(self, name: &str, value: &str) -> Result<Self> {
        let (name, value) = (c_text(name)?, c_text(value)?);
        // SAFETY: texts live until the call is over.
        check(unsafe { sys::sdx_options_set(self.handle.as_ptr(), name.as_ptr(), value.as_ptr()) })?;
        Ok(self)
    }

    /// Adds a provider to the chain, by short or ONNX Runtime name.
    pub fn provider(self, name: &str) -> Result<Self> {
        let name = c_text(name)?;
        // SAFETY: as above.
        check(unsafe { sys::sdx_options_add_provider(self.handle.as_ptr(), name.as_ptr()) })?;
        Ok(self)
    }

    pub(crate) fn as_ptr(&self) -> *const sys::sdx_options {
        self.handle.as_ptr()
    }
}

impl Default for Options {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for Options {
    fn drop(&mut self) {
        // SAFETY: made by sdx_options_create() and freed once.
        unsafe { sys::sdx_options_free(self.handle.as_ptr()) }
    }
}
