use std::ffi::CStr;
use std::fmt;
use std::os::raw::{c_char, c_void};
use std::ptr::{self, NonNull};
use std::slice;

use sardonyx_sys as sys;

use crate::error::{c_text, check, Error, Result};

/// An element type, by ONNX's number.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct DataType(pub i32);

impl DataType {
    pub const UNDEFINED: DataType = DataType(0);
    pub const FLOAT32: DataType = DataType(1);
    pub const UINT8: DataType = DataType(2);
    pub const INT8: DataType = DataType(3);
    pub const UINT16: DataType = DataType(4);
    pub const INT16: DataType = DataType(5);
    pub const INT32: DataType = DataType(6);
    pub const INT64: DataType = DataType(7);
    pub const STRING: DataType = DataType(8);
    pub const BOOL: DataType = DataType(9);
    pub const FLOAT16: DataType = DataType(10);
    pub const FLOAT64: DataType = DataType(11);
    pub const UINT32: DataType = DataType(12);
    pub const UINT64: DataType = DataType(13);
    pub const BFLOAT16: DataType = DataType(16);
}

impl fmt::Debug for DataType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const NAMES: [&str; 14] = [
            "undefined", "float32", "uint8", "int8", "uint16", "int16", "int32", "int64", "string", "bool", "float16", "float64",
            "uint32", "uint64",
        ];
        match usize::try_from(self.0).ok().and_then(|n| NAMES.get(n)) {
            Some(name) => f.write_str(name),
            None if *self == DataType::BFLOAT16 => f.write_str("bfloat16"),
            None => write!(f, "element type {}", self.0),
        }
    }
}

/// Rust's types that are elements.
///
/// # Safety
/// Every pattern of bits must be a value, and `DATA_TYPE` must be of the same size.
pub unsafe trait Element: Copy {
    const DATA_TYPE: DataType;
}

macro_rules! elements {
    ($($type:ty: $name:ident),*) => { $(
        // SAFETY: a number of the size that the name says.
        unsafe impl Element for $type {
            const DATA_TYPE: DataType = DataType::$name;
        }
    )* };
}
elements!(f32: FLOAT32, f64: FLOAT64, u8: UINT8, i8: INT8, u16: UINT16, i16: INT16, u32: UINT32, i32: INT32, u64: UINT64, i64: INT64);

/// A dense array, row-major, outermost extent first. Never changes.
pub struct Tensor {
    handle: NonNull<sys::sdx_tensor>,
}

// SAFETY: nothing changes a tensor once it is made, and reading has no state.
unsafe impl Send for Tensor {}
unsafe impl Sync for Tensor {}

impl Tensor {
    /// With a copy of `data`, as many elements as the shape says.
    pub fn new<T: Element>(shape: &[i64], data: &[T]) -> Result<Self> {
        let bytes = data.len() * std::mem::size_of::<T>();
        // SAFETY: `bytes` bytes lie at `data`.
        unsafe { Self::create(T::DATA_TYPE, shape, data.as_ptr().cast(), bytes) }
    }

    /// Of any element type but strings, from its bytes: float16, bool, packed 4-bit numbers.
    pub fn from_bytes(data_type: DataType, shape: &[i64], bytes: &[u8]) -> Result<Self> {
        // SAFETY: as above; the library checks that shape and bytes fit.
        unsafe { Self::create(data_type, shape, bytes.as_ptr().cast(), bytes.len()) }
    }

    pub fn strings(shape: &[i64], texts: &[&str]) -> Result<Self> {
        let needed = shape.iter().try_fold(1i64, |n, d| n.checked_mul(*d));
        if needed.and_then(|n| usize::try_from(n).ok()) != Some(texts.len()) {
            return Err(Error::argument(format!("shape {:?} does not fit {} texts", shape, texts.len())));
        }
        let owned = texts.iter().map(|t| c_text(t)).collect::<Result<Vec<_>>>()?;
        let pointers: Vec<*const c_char> = owned.iter().map(|t| t.as_ptr()).collect();
        let mut handle = ptr::null_mut();
        // SAFETY: as many texts as the shape says, alive until the call is over.
        check(unsafe { sys::sdx_tensor_create_strings(pointers.as_ptr(), shape.as_ptr(), shape.len(), &mut handle) })?;
        // SAFETY: a new object.
        Ok(unsafe { Self::from_raw(handle) })
    }

    unsafe fn create(data_type: DataType, shape: &[i64], data: *const c_void, bytes: usize) -> Result<Self> {
        let mut handle = ptr::null_mut();
        check(sys::sdx_tensor_create(data_type.0, shape.as_ptr(), shape.len(), data, bytes, &mut handle))?;
        Ok(Self::from_raw(handle))
    }

    pub(crate) unsafe fn from_raw(handle: *mut sys::sdx_tensor) -> Self {
        Tensor { handle: NonNull::new(handle).expect("the library promised a tensor") }
    }

    pub(crate) fn as_ptr(&self) -> *const sys::sdx_tensor {
        self.handle.as_ptr()
    }

    pub fn data_type(&self) -> DataType {
        // SAFETY: the handle is valid as long as `self`; so below.
        DataType(unsafe { sys::sdx_tensor_dtype(self.as_ptr()) })
    }

    pub fn shape(&self) -> &[i64] {
        let rank = unsafe { sys::sdx_tensor_rank(self.as_ptr()) };
        if rank == 0 {
            return &[];
        }
        unsafe { slice::from_raw_parts(sys::sdx_tensor_shape(self.as_ptr()), rank) }
    }

    /// How many elements.
    pub fn len(&self) -> usize {
        unsafe { sys::sdx_tensor_count(self.as_ptr()) }
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The elements. Another type than the tensor's is an error.
    pub fn data<T: Element>(&self) -> Result<&[T]> {
        if self.data_type() != T::DATA_TYPE {
            return Err(Error::argument(format!("the tensor is of {:?}, not {:?}", self.data_type(), T::DATA_TYPE)));
        }
        let data = unsafe { sys::sdx_tensor_data(self.as_ptr()) }.cast::<T>();
        if self.is_empty() {
            return Ok(&[]);
        }
        if data.align_offset(std::mem::align_of::<T>()) != 0 {
            return Err(Error::argument("the elements do not lie where they can be read; take bytes()"));
        }
        // SAFETY: len() elements of this type lie there as long as `self` lives.
        Ok(unsafe { slice::from_raw_parts(data, self.len()) })
    }

    /// The elements' bytes, in the machine's order. Strings have none.
    pub fn bytes(&self) -> &[u8] {
        let size = unsafe { sys::sdx_tensor_bytes(self.as_ptr()) };
        if size == 0 || self.data_type() == DataType::STRING {
            return &[];
        }
        // SAFETY: as above.
        unsafe { slice::from_raw_parts(sys::sdx_tensor_data(self.as_ptr()).cast(), size) }
    }

    /// The texts of a tensor of strings, which may hold bytes that are not UTF-8: those are replaced.
    pub fn texts(&self) -> Result<Vec<String>> {
        if self.data_type() != DataType::STRING {
            return Err(Error::argument(format!("the tensor is of {:?}, not of strings", self.data_type())));
        }
        let text = |i| unsafe { CStr::from_ptr(sys::sdx_tensor_string(self.as_ptr(), i)) };
        Ok((0..self.len()).map(|i| text(i).to_string_lossy().into_owned()).collect())
    }
}

impl fmt::Debug for Tensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}{:?}", self.data_type(), self.shape())
    }
}

impl Drop for Tensor {
    fn drop(&mut self) {
        // SAFETY: owned, and freed once.
        unsafe { sys::sdx_tensor_free(self.handle.as_ptr()) }
    }
}
