//! The Python module `mirab._native`: conversion of arguments, and the interpreter's lock let go around every wait.
mod engine;
mod failure;
mod scheduler;

use mirab_core::{Refusal, Template};
use pyo3::prelude::*;
use serde_json::{Value, json};
use std::ffi::OsString;
use std::path::PathBuf;

/// Runs the `mirab` command with the arguments after its name; engines are started with `python`.
#[pyfunction]
fn cli(py: Python<'_>, argv: Vec<OsString>, python: PathBuf) -> i32 {
    py.detach(|| mirab_cli::run(argv, Some(python)))
}

/// The fields of a name that holds parameters, as `{"fields": [...]}`; or `{"code", "detail"}` where it is malformed.
#[pyfunction]
fn template_fields(name: &str) -> String {
    answer(Template::parse(name).map(|template| json!({"fields": template.fields().collect::<Vec<_>>()})))
}

/// A name with the values of its fields filled in, as `{"name"}`; or `{"code", "detail"}`. `values` is an object by whole fields.
#[pyfunction]
fn render_name(name: &str, values: &str) -> String {
    answer(rendered(name, values).map(|name| json!({"name": name})))
}

fn rendered(name: &str, values: &str) -> Result<String, Refusal> {
    let template = Template::parse(name)?;
    let values: Value = serde_json::from_str(values).map_err(|error| Refusal::TemplateError {
        name: name.into(),
        why: format!("its values are no JSON: {error}"),
    })?;
    template.render(|field| mirab_flow::text_of(values.get(field)))
}

fn answer(result: Result<Value, Refusal>) -> String {
    result.unwrap_or_else(|refusal| json!({"code": refusal.code(), "detail": refusal.to_string()})).to_string()
}

#[pymodule]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<engine::Engine>()?;
    module.add_class::<scheduler::Spec>()?;
    module.add_function(wrap_pyfunction!(scheduler::read_config, module)?)?;
    module.add_class::<scheduler::Alarm>()?;
    module.add_class::<scheduler::Machine>()?;
    module.add_class::<scheduler::Store>()?;
    module.add_function(wrap_pyfunction!(cli, module)?)?;
    module.add_function(wrap_pyfunction!(template_fields, module)?)?;
    module.add_function(wrap_pyfunction!(render_name, module)?)?;
    module.add("__version__", env!("CARGO_PKG_VERSION"))
}
