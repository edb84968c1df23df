//! The Verilated core behind the [`Endpoint`] trait.

use std::ffi::{CString, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr::NonNull;

use super::ffi::{self, Api};
use super::{Endpoint, Inputs, ModelError, Outputs, Strap};

/// `rtl/ferronic_core.sv`, Verilated.
pub struct VerilatedCore {
    api: &'static Api,
    model: NonNull<c_void>,
    time: u64,
}

// SAFETY: a model is used by one thread at a time (`&mut self`), keeps no thread-local state
// between calls, and shares nothing with other models.
unsafe impl Send for VerilatedCore {}

impl VerilatedCore {
    /// Creates a model, held in reset, whose uninitialised state is random by `seed`.
    pub fn new(data_w: u32, seed: u64, strap: &Strap) -> Result<Self, ModelError> {
        let api = ffi::api(data_w).ok_or(ModelError::Width {
            asked: data_w,
            built: ffi::WIDTHS,
        })?;
        let words = strap.words();
        // SAFETY: `words` is valid for its length during the call.
        let model = unsafe { (api.create)(seed, words.as_ptr(), words.len()) };
        let model = NonNull::new(model).ok_or_else(|| {
            ModelError::Create(
                "its initial blocks failed, or there is not enough memory".to_owned(),
            )
        })?;
        Ok(Self {
            api,
            model,
            time: 0,
        })
    }

    fn messages(&mut self) -> String {
        let mut buffer = vec![0_u8; 17 * 1024];
        // SAFETY: the model is alive, the buffer valid for its length.
        let length = unsafe {
            (self.api.messages)(
                self.model.as_ptr(),
                buffer.as_mut_ptr().cast(),
                buffer.len(),
            )
        };
        buffer.truncate(length);
        String::from_utf8_lossy(&buffer).into_owned()
    }

    fn c_path(path: &Path) -> Result<CString, ModelError> {
        CString::new(path.as_os_str().as_bytes())
            .map_err(|_| ModelError::File(path.display().to_string()))
    }
}

impl Drop for VerilatedCore {
    fn drop(&mut self) {
        // SAFETY: created by `create`, destroyed once.
        unsafe { (self.api.destroy)(self.model.as_ptr()) }
    }
}

impl Endpoint for VerilatedCore {
    fn beat_bytes(&self) -> usize {
        self.api.data_w as usize / 8
    }

    fn set_strap(&mut self, strap: &Strap) {
        let words = strap.words();
        // SAFETY: the model is alive, `words` is valid for its length during the call.
        unsafe { (self.api.set_strap)(self.model.as_ptr(), words.as_ptr(), words.len()) }
    }

    fn step(&mut self, input: &Inputs, output: &mut Outputs) -> Result<(), ModelError> {
        // SAFETY: the model is alive; both structs have the layout that the shim expects.
        let status = unsafe { (self.api.step)(self.model.as_ptr(), input, output) };
        if status == 0 {
            self.time = output.time;
            return Ok(());
        }
        Err(ModelError::Rtl {
            cycle: self.time,
            text: self.messages(),
        })
    }

    fn trace(&mut self, path: &Path) -> Result<(), ModelError> {
        let c_path = Self::c_path(path)?;
        // SAFETY: the model is alive, the string ends with 0.
        match unsafe { (self.api.trace)(self.model.as_ptr(), c_path.as_ptr()) } {
            0 => Ok(()),
            1 => Err(ModelError::NotBuilt("tracing", "trace")),
            _ => Err(ModelError::File(path.display().to_string())),
        }
    }

    fn write_coverage(&mut self, path: &Path) -> Result<(), ModelError> {
        let c_path = Self::c_path(path)?;
        // SAFETY: the model is alive, the string ends with 0.
        match unsafe { (self.api.coverage)(self.model.as_ptr(), c_path.as_ptr()) } {
            0 => Ok(()),
            _ => Err(ModelError::NotBuilt("coverage", "coverage")),
        }
    }
}
