//! Refusals as the exceptions of `mirab.errors`.
use pyo3::prelude::*;

/// The class that `mirab.errors` has for the code.
pub fn raise(py: Python<'_>, code: &str, detail: &str) -> PyErr {
    let made = py.import("mirab.errors").and_then(|errors| errors.call_method1("from_code", (code, detail)));
    made.map_or_else(|failed| failed, PyErr::from_value)
}
