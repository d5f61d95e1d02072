//! Names that work asks for: filled in from its parameters, checked, normalised and summed.
use crate::records::Needs;
use mirab_core::{Refusal, Template, check_requested, is_template};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// What is asked for by the parameters given, else by the defaults: plain names in order, each once, with its units.
///
/// A parameter that is given counts as it is, a null too: then its default is not meant.
///
/// # Errors
/// `TemplateError` where a field has no text, `InvalidResource` for a bad name or 0 units.
pub fn plain_needs(
    needs: &[(String, u64)],
    params: &Map<String, Value>,
    defaults: &Map<String, Value>,
) -> Result<BTreeMap<String, u64>, Refusal> {
    let fill = |(name, units): &(String, u64)| {
        if !is_template(name) {
            return Ok((name.clone(), *units));
        }
        let name = Template::parse(name)?.render(|field| text_of(value_of(params, defaults, field)))?;
        Ok((name, *units))
    };
    requested(&needs.iter().map(fill).collect::<Result<Needs, Refusal>>()?)
}

/// The text of a value as it stands in a name; or what it is instead.
///
/// # Errors
/// `missing`, `null`, `a list` or `an object`: none of them is text. A number that was rounded as it was read, so that different ones would
/// share a name.
pub fn text_of(value: Option<&Value>) -> Result<String, &'static str> {
    match value {
        None => Err("missing"),
        Some(Value::String(text)) => Ok(text.clone()),
        Some(Value::Number(number)) if is_rounded(number) => Err("a number too large to be told from its neighbours"),
        Some(value @ (Value::Number(_) | Value::Bool(_))) => Ok(value.to_string()),
        Some(Value::Null) => Err("null"),
        Some(Value::Array(_)) => Err("a list"),
        Some(Value::Object(_)) => Err("an object"),
    }
}

/// True beyond 64 bits: a whole number of that size was read as the nearest float.
fn is_rounded(number: &serde_json::Number) -> bool {
    const LEAST: f64 = i64::MIN as f64;
    const MOST: f64 = u64::MAX as f64;
    number.is_f64() && number.as_f64().is_none_or(|value| value <= LEAST || value >= MOST)
}

fn value_of<'a>(params: &'a Map<String, Value>, defaults: &'a Map<String, Value>, field: &str) -> Option<&'a Value> {
    let mut parts = field.split('.');
    let name = parts.next()?;
    let whole = params.get(name).or_else(|| defaults.get(name))?;
    parts.try_fold(whole, |value, part| value.get(part))
}

/// Names and units as they were asked for: checked, normalised, and summed where a name stands twice.
pub(crate) fn requested(needs: &[(String, u64)]) -> Result<BTreeMap<String, u64>, Refusal> {
    let mut summed: BTreeMap<String, u64> = BTreeMap::new();
    for (name, units) in needs {
        let entry = summed.entry(check_requested(name)?).or_default();
        if *units == 0 {
            return Err(Refusal::invalid(name, "0 units were asked for, expected at least 1"));
        }
        *entry = entry.saturating_add(*units);
    }
    Ok(summed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn names(name: &str, params: Value, defaults: Value) -> Result<Vec<String>, String> {
        let (Value::Object(params), Value::Object(defaults)) = (params, defaults) else { unreachable!() };
        let needs = plain_needs(&[(name.into(), 1)], &params, &defaults);
        needs.map(|needs| needs.into_keys().collect()).map_err(|refusal| refusal.to_string())
    }

    #[test]
    fn defaults_stand_in_only_for_parameters_that_are_not_given() {
        let defaults = || json!({"tenant": "acme", "order": {"region": "eu"}});
        assert_eq!(names("api:{tenant}", json!({}), defaults()).unwrap(), ["api:acme"]);
        assert_eq!(names("api:{tenant}", json!({"tenant": "zeta"}), defaults()).unwrap(), ["api:zeta"]);
        let null = names("api:{tenant}", json!({"tenant": null}), defaults()).unwrap_err();
        assert!(null.contains("`tenant` is null"), "{null}");
        let other = names("api:{order.region}", json!({"order": {}}), defaults()).unwrap_err();
        assert!(other.contains("`order.region` is missing"), "{other}");
    }

    #[test]
    fn values_are_text_as_json_writes_them() {
        for (value, text) in
            [(json!("7"), "7"), (json!(7), "7"), (json!(-0.5), "-0.5"), (json!(1e16), "1e+16"), (json!(true), "true")]
        {
            assert_eq!(text_of(Some(&value)).unwrap(), text);
        }
        let largest: Value = serde_json::from_str("18446744073709551615").unwrap();
        assert_eq!(text_of(Some(&largest)).unwrap(), "18446744073709551615");
        let rounded: Value = serde_json::from_str("18446744073709551617").unwrap();
        for (value, what) in
            [(json!([1]), "is a list"), (json!({"a": 1}), "is an object"), (rounded, "is a number too large")]
        {
            let told = names("{t}", json!({"t": value}), json!({})).unwrap_err();
            assert!(told.contains(what), "{told}");
        }
    }

    #[test]
    fn names_that_come_out_the_same_are_summed() {
        let needs = [("api:{a}".to_owned(), 1), ("api:{b}".to_owned(), 2), (" api:x ".to_owned(), 4)];
        let params = json!({"a": "x", "b": "x"});
        let summed = plain_needs(&needs, params.as_object().unwrap(), &Map::new()).unwrap();
        assert_eq!(summed, BTreeMap::from([("api:x".to_owned(), 7)]));
    }
}
