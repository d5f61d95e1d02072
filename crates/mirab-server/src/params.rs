//! Parameters of a run against the signature of its flow.
use mirab_config::did_you_mean;
use mirab_wire::{FoundFlow, Param};
use serde_json::{Map, Value};

/// Checks what can be told without user code: names, and values that cannot be meant for their annotation.
///
/// # Errors
/// A sentence that says what was wrong, what was expected and what to do.
pub(crate) fn check(flow: &FoundFlow, params: &Map<String, Value>) -> Result<(), String> {
    for (name, value) in params {
        match flow.params.iter().find(|param| param.name == *name) {
            Some(param) => check_value(flow, param, value)?,
            None if flow.any_params => {}
            None => return Err(unknown(flow, name)),
        }
    }
    match flow.params.iter().find(|param| param.required && !params.contains_key(&param.name)) {
        Some(missing) => {
            Err(format!("flow {:?} needs the parameter {:?}, which was not given: add it", flow.name, missing.name))
        }
        None => Ok(()),
    }
}

fn unknown(flow: &FoundFlow, name: &str) -> String {
    let known = || flow.params.iter().map(|param| param.name.as_str());
    let list = known().collect::<Vec<_>>().join(", ");
    let takes = if list.is_empty() { "it takes none".to_owned() } else { format!("it takes {list}") };
    format!("flow {:?} has no parameter {name:?}: {takes}{}", flow.name, did_you_mean(name, known()))
}

fn check_value(flow: &FoundFlow, param: &Param, value: &Value) -> Result<(), String> {
    let annotation = param.annotation.as_deref().unwrap_or_default();
    // A default of `None` is null on the way here.
    let is_default = !param.required && param.default.as_ref().unwrap_or(&Value::Null) == value;
    if is_default || may_be(annotation, value) {
        return Ok(());
    }
    Err(format!("parameter {:?} of flow {:?} is {}, expected {annotation}", param.name, flow.name, describe(value)))
}

/// True unless the value cannot be meant: the engine coerces by annotation, so that a number may come as a text.
fn may_be(annotation: &str, value: &Value) -> bool {
    match (annotation, value) {
        ("int", Value::Number(number)) => number.as_f64().is_none_or(|number| number.fract() == 0.0),
        ("int", Value::String(text)) => {
            text.trim().trim_start_matches(['-', '+']).bytes().all(|c| c.is_ascii_digit() || c == b'_')
                && !text.trim().is_empty()
        }
        ("float", Value::Number(_)) => true,
        ("float", Value::String(text)) => text.trim().parse::<f64>().is_ok(),
        ("bool", Value::Bool(_)) => true,
        ("bool", Value::String(text)) => matches!(text.to_lowercase().as_str(), "true" | "false"),
        ("str", value) => value.is_string(),
        ("int" | "float" | "bool", _) => false,
        _ => true,
    }
}

fn describe(value: &Value) -> String {
    match value {
        Value::Null => "null".into(),
        Value::Bool(flag) => flag.to_string(),
        Value::Number(number) => format!("the number {number}"),
        Value::String(text) => format!("the text {text:?}"),
        Value::Array(_) => "a list".into(),
        Value::Object(_) => "an object".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn flow(any_params: bool) -> FoundFlow {
        let param = |name: &str, annotation: &str, required, default| json!({"name": name, "required": required, "annotation": annotation, "default": default});
        let params = json!([
            param("rows", "int", true, Value::Null),
            param("rate", "float", false, json!(0.5)),
            param("fast", "bool", false, json!(false)),
            param("path", "str", false, json!(null)),
            param("any", "list[int] | None", false, json!(null)),
        ]);
        let options = json!({});
        let flow = json!({"name": "nightly", "file": "a.py", "function": "nightly", "options": options, "params": params, "any_params": any_params});
        serde_json::from_value(flow).unwrap()
    }

    #[test]
    fn values_that_can_be_meant_pass() {
        for params in [
            json!({"rows": 1}),
            json!({"rows": "12", "rate": 3, "fast": true, "path": "x", "any": {}}),
            json!({"rows": 2.0, "rate": "1e3", "fast": "True", "path": null}),
        ] {
            check(&flow(false), params.as_object().unwrap()).unwrap();
        }
        check(&flow(true), json!({"rows": 1, "more": 2}).as_object().unwrap()).unwrap();
    }

    #[test]
    fn what_cannot_be_meant_is_refused() {
        for (params, wanted) in [
            (json!({}), r#"needs the parameter "rows""#),
            (json!({"rosw": 1}), r#"no parameter "rosw": it takes rows, rate, fast, path, any; did you mean rows?"#),
            (json!({"rows": "many"}), r#"parameter "rows" of flow "nightly" is the text "many", expected int"#),
            (json!({"rows": 1.5}), "is the number 1.5, expected int"),
            (json!({"rows": null}), "is null, expected int"),
            (json!({"rows": ""}), "expected int"),
            (json!({"rows": 1, "rate": []}), "is a list, expected float"),
            (json!({"rows": 1, "fast": 1}), "is the number 1, expected bool"),
            (json!({"rows": 1, "path": 5}), "is the number 5, expected str"),
        ] {
            let error = check(&flow(false), params.as_object().unwrap()).unwrap_err();
            assert!(error.contains(wanted), "{error}");
        }
    }
}
