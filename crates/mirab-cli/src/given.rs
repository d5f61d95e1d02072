//! `NAME=VALUE` arguments.
use crate::failure::Failure;
use mirab_wire::Needs;
use serde_json::{Map, Number, Value};

/// A `--param`: JSON where the value is JSON, else text.
pub(crate) fn param(text: &str) -> Result<(String, Value), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), json_or_text(value))),
        _ => Err("expected NAME=VALUE, such as rows=10".into()),
    }
}

fn json_or_text(text: &str) -> Value {
    match serde_json::from_str(text) {
        // A whole number beyond 64 bits would lose digits; as text it keeps them, and the flow's annotation decides.
        Ok(Value::Number(number)) if is_rounded(&number, text) => text.into(),
        Ok(value) => value,
        Err(_) => text.into(),
    }
}

fn is_rounded(number: &Number, text: &str) -> bool {
    number.is_f64() && text.trim().bytes().all(|byte| byte.is_ascii_digit() || byte == b'-')
}

/// A `--resource`; a name may hold `=` itself, as in `api:{tenant=eu}=1`.
pub(crate) fn need(text: &str) -> Result<(String, u64), String> {
    match text.rsplit_once('=') {
        Some((name, units)) if !name.is_empty() => match units.trim().parse() {
            Ok(units) => Ok((name.to_owned(), units)),
            Err(_) => Err(format!("units are {units:?}, expected a whole number, such as gpu=1")),
        },
        _ => Err("expected NAME=UNITS, such as gpu=1".into()),
    }
}

/// A `--priority`.
pub(crate) fn priority(text: &str) -> Result<i32, String> {
    let (least, most) = (i32::MIN, i32::MAX);
    text.parse().map_err(|_| format!("expected a whole number from {least} to {most}, such as 5; higher goes first"))
}

/// All params by name.
pub(crate) fn params(given: &[(String, Value)]) -> Result<Map<String, Value>, Failure> {
    let mut params = Map::new();
    for (name, value) in given {
        if params.insert(name.clone(), value.clone()).is_some() {
            return Err(twice("--param", name));
        }
    }
    Ok(params)
}

/// All needs by name.
pub(crate) fn needs(given: &[(String, u64)]) -> Result<Needs, Failure> {
    let mut needs = Needs::new();
    for (name, units) in given {
        if needs.insert(name.clone(), *units).is_some() {
            return Err(twice("--resource", name));
        }
    }
    Ok(needs)
}

fn twice(flag: &str, name: &str) -> Failure {
    Failure::usage(format!("{flag} {name} is given twice, expected each name once")).hint("leave one of them out")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn values_are_json_where_they_can_be() {
        for (text, value) in [
            ("a=3", json!(3)),
            ("a=1.5", json!(1.5)),
            ("a=true", json!(true)),
            ("a=null", json!(null)),
            ("a=[1, \"x\"]", json!([1, "x"])),
            ("a=\"3\"", json!("3")),
            ("a=monday", json!("monday")),
            ("a=007", json!("007")),
            ("a=x=y", json!("x=y")),
            ("a=", json!("")),
            ("a=NaN", json!("NaN")),
            ("a=123456789012345678901234567890", json!("123456789012345678901234567890")),
        ] {
            assert_eq!(param(text), Ok(("a".into(), value)), "{text}");
        }
        assert!(param("=3").is_err() && param("rows").is_err());
    }

    #[test]
    fn units_follow_the_last_sign() {
        assert_eq!(need("gpu=2"), Ok(("gpu".into(), 2)));
        assert_eq!(need("a=b=1"), Ok(("a=b".into(), 1)));
        assert!(need("gpu").is_err() && need("gpu=-1").is_err() && need("=1").is_err());
    }

    #[test]
    fn a_name_given_twice_is_refused() {
        assert!(params(&[("a".into(), json!(1)), ("a".into(), json!(1))]).is_err());
        assert!(needs(&[("a".into(), 1), ("a".into(), 2)]).is_err());
    }
}
