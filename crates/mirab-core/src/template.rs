//! Names that hold parameters: `api:{{ tenant }}` or `api:{tenant}`, with dots for nested fields and no expressions.
use crate::name::check_requested;
use crate::refusal::Refusal;

/// A name with parameters of the work that asks for it.
///
/// ```
/// use mirab_core::Template;
/// let template = Template::parse("api:{{ order.tenant }}").unwrap();
/// assert_eq!(template.fields().collect::<Vec<_>>(), ["order.tenant"]);
/// assert_eq!(template.render(|field| if field == "order.tenant" { Ok("acme".into()) } else { Err("missing") }).unwrap(), "api:acme");
/// assert_eq!(template.render(|_| Err("missing")).unwrap_err().code(), "TemplateError");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template {
    text: String,
    parts: Vec<Part>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Text(String),
    Field(String),
}

/// True for a name that holds parameters, well-formed or not.
#[must_use]
pub fn is_template(name: &str) -> bool {
    name.contains(['{', '}'])
}

fn malformed(text: &str, why: impl Into<String>) -> Refusal {
    Refusal::TemplateError { name: text.into(), why: why.into() }
}

impl Template {
    /// Reads a name with parameters.
    ///
    /// # Errors
    /// `TemplateError` when a brace is not closed, or a field is empty or not made of names with dots between them.
    pub fn parse(text: &str) -> Result<Self, Refusal> {
        let (mut parts, mut rest) = (Vec::new(), text);
        while let Some(at) = rest.find(['{', '}']) {
            let (before, braces) = rest.split_at(at);
            if braces.starts_with('}') {
                return Err(malformed(text, "a `}` closes nothing, expected `{field}` or `{{ field }}`"));
            }
            if !before.is_empty() {
                parts.push(Part::Text(before.into()));
            }
            let (open, close) = if braces.starts_with("{{") { ("{{", "}}") } else { ("{", "}") };
            let inside = &braces[open.len()..];
            let end =
                inside.find(close).ok_or_else(|| malformed(text, format!("`{open}` is not closed by `{close}`")))?;
            let field = inside[..end].trim();
            check_field(text, field)?;
            parts.push(Part::Field(field.into()));
            rest = &inside[end + close.len()..];
        }
        if !rest.is_empty() {
            parts.push(Part::Text(rest.into()));
        }
        Ok(Self { text: text.into(), parts })
    }

    /// The fields it needs, in order; `order.tenant` is the field `tenant` of `order`.
    pub fn fields(&self) -> impl Iterator<Item = &str> {
        self.parts.iter().filter_map(|part| match part {
            Part::Field(field) => Some(field.as_str()),
            Part::Text(_) => None,
        })
    }

    /// The plain name for the values of some work; `value_of` gives the text of a field, or what it is instead: `missing`, `a list`.
    ///
    /// A value is inserted as it is, and the whole is checked like any name that is asked for: it cannot become a pattern, another
    /// template or a reserved name.
    ///
    /// # Errors
    /// `TemplateError` naming a field that has no text or an empty one, `InvalidResource` when what comes out is no plain name.
    pub fn render(&self, mut value_of: impl FnMut(&str) -> Result<String, &'static str>) -> Result<String, Refusal> {
        let mut name = String::new();
        for part in &self.parts {
            match part {
                Part::Text(text) => name.push_str(text),
                Part::Field(field) => {
                    name.push_str(&self.value(field, value_of(field))?);
                }
            }
        }
        if is_template(&name) {
            return Err(malformed(&self.text, format!("it renders to {name:?}, which is a template again")));
        }
        check_requested(&name)
    }

    fn value(&self, field: &str, value: Result<String, &'static str>) -> Result<String, Refusal> {
        let value = value.and_then(|text| if text.trim().is_empty() { Err("empty") } else { Ok(text) });
        value.map_err(|what| {
            let expected = "expected a parameter of this work that is text, a number, true or false";
            malformed(&self.text, format!("the field `{field}` is {what}, {expected}"))
        })
    }
}

/// Names with dots between them: letters, digits and `_`, as parameters are called.
fn check_field(text: &str, field: &str) -> Result<(), Refusal> {
    if field.is_empty() {
        return Err(malformed(text, "a field is empty, expected the name of a parameter between the braces"));
    }
    let is_name = |part: &str| !part.is_empty() && part.chars().all(|c| c.is_alphanumeric() || c == '_');
    if !field.split('.').all(is_name) {
        return Err(malformed(
            text,
            format!("`{field}` is no field, expected parameter names with dots between them and no expressions"),
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn render(text: &str, values: &[(&str, &str)]) -> Result<String, Refusal> {
        let found = |field: &str| values.iter().find(|(name, _)| *name == field);
        let value_of = |field: &str| found(field).map(|(_, value)| (*value).to_owned()).ok_or("missing");
        Template::parse(text)?.render(value_of)
    }

    #[test]
    fn both_ways_of_writing_and_several_fields() {
        let values = [("tenant", "acme"), ("order.region", "eu west"), ("n", "7")];
        for (text, name) in [
            ("api:{{ tenant }}", "api:acme"),
            ("api:{{tenant}}", "api:acme"),
            ("api:{tenant}", "api:acme"),
            ("{order.region}/{{ n }}-{tenant}", "eu west/7-acme"),
            ("plain", "plain"),
        ] {
            assert_eq!(render(text, &values).unwrap(), name, "{text}");
        }
    }

    #[test]
    fn case_e8_a_missing_or_empty_field_is_told_and_shares_no_key() {
        let missing = render("api:{{ tenannt }}", &[("tenant", "acme")]).unwrap_err();
        assert_eq!(missing.code(), "TemplateError");
        assert!(missing.to_string().contains("`tenannt` is missing"), "{missing}");
        let empty = render("api:{tenant}", &[("tenant", "  ")]).unwrap_err();
        assert!(empty.code() == "TemplateError" && empty.to_string().contains("`tenant` is empty"), "{empty}");
    }

    #[test]
    fn malformed_templates_are_told() {
        for text in
            ["{", "}", "a{b", "{{ a }", "{}", "{{ }}", "{a b}", "{a..b}", "{.a}", "{a|b}", "{{ a + 1 }}", "x}y{z}"]
        {
            assert_eq!(Template::parse(text).unwrap_err().code(), "TemplateError", "{text}");
        }
    }

    #[test]
    fn case_r13_a_value_cannot_become_anything_but_a_plain_name() {
        for value in ["*", "{x}", "a\nb", "x}"] {
            assert!(render("api:{t}", &[("t", value)]).is_err(), "{value:?}");
        }
        for value in ["pool:x", "flow:shop/x", "backfill:1", "tag:gpu"] {
            assert_eq!(render("{t}", &[("t", value)]).unwrap_err().code(), "InvalidResource", "{value}");
        }
        assert_eq!(render("api:{t}", &[("t", &"x".repeat(300))]).unwrap_err().code(), "InvalidResource");
        assert_eq!(render("api:{t}", &[("t", "  e\u{301} ")]).unwrap(), "api:  é");
    }
}
