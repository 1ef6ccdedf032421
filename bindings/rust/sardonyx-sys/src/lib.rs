//! The functions of `sdx/sdx.h` and `sdx/mapped_files.h` that the crate `sardonyx` uses. These headers say what they do, who owns what, and what threads may do.

#![allow(non_camel_case_types)]

use std::os::raw::{c_char, c_int, c_void};

pub type sdx_dtype = i32;
/// Grows at the end only: a number, so that newer libraries may return newer ones.
pub type sdx_status = c_int;

pub const SDX_OK: sdx_status = 0;
pub const SDX_INVALID_MODEL: sdx_status = 1;
pub const SDX_INVALID_ARGUMENT: sdx_status = 2;
pub const SDX_NOT_IMPLEMENTED: sdx_status = 3;
pub const SDX_PROVIDER_UNAVAILABLE: sdx_status = 4;
pub const SDX_OUT_OF_MEMORY: sdx_status = 5;
pub const SDX_IO: sdx_status = 6;
pub const SDX_RUNTIME_FAILURE: sdx_status = 7;
pub const SDX_CANCELLED: sdx_status = 8;
pub const SDX_DEADLINE_EXCEEDED: sdx_status = 9;
pub const SDX_INTERNAL: sdx_status = 10;

macro_rules! handles {
    ($($name:ident),*) => { $(
        #[repr(C)]
        pub struct $name {
            _private: [u8; 0],
        }
    )* };
}
handles!(sdx_session, sdx_tensor, sdx_options, sdx_cancel);

extern "C" {
    pub fn sdx_version() -> *const c_char;
    pub fn sdx_status_name(status: sdx_status) -> *const c_char;
    pub fn sdx_last_error() -> *const c_char;

    pub fn sdx_survive_mapped_faults();
    pub fn sdx_check_mapped_files() -> sdx_status;

    pub fn sdx_options_create() -> *mut sdx_options;
    pub fn sdx_options_free(options: *mut sdx_options);
    pub fn sdx_options_set(options: *mut sdx_options, name: *const c_char, value: *const c_char) -> sdx_status;
    pub fn sdx_options_add_provider(options: *mut sdx_options, name: *const c_char) -> sdx_status;
    pub fn sdx_options_add_custom_ops(options: *mut sdx_options, library: *const c_char) -> sdx_status;
    pub fn sdx_options_set_provider_option(
        options: *mut sdx_options,
        provider: *const c_char,
        key: *const c_char,
        value: *const c_char,
    ) -> sdx_status;

    pub fn sdx_session_open(path: *const c_char, options: *const sdx_options, session: *mut *mut sdx_session) -> sdx_status;
    pub fn sdx_session_from_bytes(
        bytes: *const c_void,
        size: usize,
        options: *const sdx_options,
        session: *mut *mut sdx_session,
    ) -> sdx_status;
    pub fn sdx_session_free(session: *mut sdx_session);
    pub fn sdx_session_input_count(session: *const sdx_session) -> usize;
    pub fn sdx_session_output_count(session: *const sdx_session) -> usize;
    pub fn sdx_session_input_name(session: *const sdx_session, index: usize) -> *const c_char;
    pub fn sdx_session_output_name(session: *const sdx_session, index: usize) -> *const c_char;
    pub fn sdx_session_input_type(
        session: *const sdx_session,
        index: usize,
        shape: *mut i64,
        capacity: usize,
        rank: *mut i64,
    ) -> sdx_dtype;
    pub fn sdx_session_output_type(
        session: *const sdx_session,
        index: usize,
        shape: *mut i64,
        capacity: usize,
        rank: *mut i64,
    ) -> sdx_dtype;
    pub fn sdx_session_run(
        session: *const sdx_session,
        names: *const *const c_char,
        inputs: *const *const sdx_tensor,
        input_count: usize,
        output_names: *const *const c_char,
        output_count: usize,
        outputs: *mut *mut sdx_tensor,
        timeout_ms: i64,
        cancel: *const sdx_cancel,
    ) -> sdx_status;

    pub fn sdx_tensor_create(
        dtype: sdx_dtype,
        shape: *const i64,
        rank: usize,
        data: *const c_void,
        bytes: usize,
        tensor: *mut *mut sdx_tensor,
    ) -> sdx_status;
    pub fn sdx_tensor_create_strings(
        values: *const *const c_char,
        shape: *const i64,
        rank: usize,
        tensor: *mut *mut sdx_tensor,
    ) -> sdx_status;
    pub fn sdx_tensor_free(tensor: *mut sdx_tensor);
    pub fn sdx_tensor_dtype(tensor: *const sdx_tensor) -> sdx_dtype;
    pub fn sdx_tensor_rank(tensor: *const sdx_tensor) -> usize;
    pub fn sdx_tensor_shape(tensor: *const sdx_tensor) -> *const i64;
    pub fn sdx_tensor_count(tensor: *const sdx_tensor) -> usize;
    pub fn sdx_tensor_bytes(tensor: *const sdx_tensor) -> usize;
    pub fn sdx_tensor_data(tensor: *const sdx_tensor) -> *const c_void;
    pub fn sdx_tensor_string(tensor: *const sdx_tensor, index: usize) -> *const c_char;

    pub fn sdx_cancel_create() -> *mut sdx_cancel;
    pub fn sdx_cancel_free(cancel: *mut sdx_cancel);
    pub fn sdx_cancel_now(cancel: *mut sdx_cancel);
}
