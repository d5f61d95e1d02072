//! The Python module `mirab._native`: conversion of arguments, and the interpreter's lock let go around every wait.
mod engine;

use pyo3::prelude::*;
use std::ffi::OsString;
use std::path::PathBuf;

/// Runs the `mirab` command with the arguments after its name; engines are started with `python`.
#[pyfunction]
fn cli(py: Python<'_>, argv: Vec<OsString>, python: PathBuf) -> i32 {
    py.detach(|| mirab_cli::run(argv, Some(python)))
}

#[pymodule]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<engine::Engine>()?;
    module.add_function(wrap_pyfunction!(cli, module)?)?;
    module.add("__version__", env!("CARGO_PKG_VERSION"))
}
