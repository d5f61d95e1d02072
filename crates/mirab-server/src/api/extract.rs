//! Reads requests, with errors that say which field is wrong.
use super::problem::ApiError;
use axum::body::Bytes;
use axum::extract::{FromRequest, FromRequestParts, Path, Query, Request};
use axum::http::header::CONTENT_TYPE;
use axum::http::request::Parts;
use serde::de::DeserializeOwned;

/// A JSON body.
pub(crate) struct Body<T>(pub T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequest<S> for Body<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &S) -> Result<Self, ApiError> {
        parse(&json(request, state).await?).map(Self)
    }
}

/// A JSON body in which no number may lose digits.
pub(crate) struct ExactBody<T>(pub T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequest<S> for ExactBody<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &S) -> Result<Self, ApiError> {
        let bytes = json(request, state).await?;
        let body = parse(&bytes)?;
        match too_large(&bytes) {
            Some(number) => Err(ApiError::invalid_params(format!(
                "{number} is beyond 64 bits and would lose digits: give it as a text, in quotes"
            ))),
            None => Ok(Self(body)),
        }
    }
}

/// All bodies are objects: a list would be read as their fields by position.
fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, ApiError> {
    let cannot = |why: &dyn std::fmt::Display| ApiError::bad_request(format!("the body cannot be used: {why}"));
    if bytes.trim_ascii_start().first() == Some(&b'[') {
        return Err(cannot(&"it is a list, expected an object, as in {\"name\": value}"));
    }
    serde_json::from_slice(bytes).map_err(|error| cannot(&error))
}

/// The first whole number of a JSON text that 64 bits cannot hold.
fn too_large(json: &[u8]) -> Option<&str> {
    let is_part = |byte: u8| byte.is_ascii_digit() || matches!(byte, b'-' | b'+' | b'.' | b'e' | b'E');
    let mut rest = json;
    while let Some(at) = rest.iter().position(|byte| *byte == b'"' || is_part(*byte)) {
        rest = &rest[at..];
        if rest[0] == b'"' {
            rest = &rest[end_of_text(rest)..];
            continue;
        }
        let length = rest.iter().position(|byte| !is_part(*byte)).unwrap_or(rest.len());
        let number = std::str::from_utf8(&rest[..length]).unwrap_or_default();
        let is_whole = number.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-');
        if is_whole && number.len() > 18 && number.parse::<u64>().is_err() && number.parse::<i64>().is_err() {
            return Some(number);
        }
        rest = &rest[length..];
    }
    None
}

/// Where the JSON text ends that begins with the first quote.
fn end_of_text(json: &[u8]) -> usize {
    let mut at = 1;
    while at < json.len() && json[at] != b'"' {
        at += if json[at] == b'\\' { 2 } else { 1 };
    }
    json.len().min(at + 1)
}

/// The body of a request that says it is JSON.
async fn json<S: Send + Sync>(request: Request, state: &S) -> Result<Bytes, ApiError> {
    let kind = request.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default().to_owned();
    // A page in a browser can send other kinds to this server without being asked whether it may.
    if !kind.split(';').next().is_some_and(|kind| kind.trim().eq_ignore_ascii_case("application/json")) {
        return Err(ApiError::bad_request(format!("the content type is {kind:?}, expected application/json")));
    }
    let bytes = Bytes::from_request(request, state).await;
    bytes.map_err(|error| ApiError::bad_request(format!("the body could not be read: {error}")))
}

/// What stands after the `?`.
pub(crate) struct Args<T>(pub T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequestParts<S> for Args<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        let query = Query::try_from_uri(&parts.uri);
        query
            .map(|Query(args)| Self(args))
            .map_err(|error| ApiError::bad_request(format!("the query cannot be used: {error}")))
    }
}

/// Segments of the path, percent-decoded.
pub(crate) struct Segment<T>(pub T);

impl<S: Send + Sync, T: DeserializeOwned + Send> FromRequestParts<S> for Segment<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let path = Path::<T>::from_request_parts(parts, state).await;
        path.map(|Path(segment)| Self(segment))
            .map_err(|error| ApiError::bad_request(format!("the path cannot be used: {error}")))
    }
}

#[cfg(test)]
mod tests {
    use super::too_large;

    #[test]
    fn whole_numbers_beyond_64_bits_are_found_and_nothing_else() {
        for json in [
            r#"{"n": 18446744073709551615, "m": -9223372036854775808}"#,
            r#"{"f": 1e30, "g": 1.0000000000000000000000001, "h": -123456789012345678901234567890.5}"#,
            r#"{"text": "123456789012345678901234567890", "q\"1234567890123456789012345": "\\"}"#,
            "[0, -0, 7]",
            "",
        ] {
            assert_eq!(too_large(json.as_bytes()), None, "{json}");
        }
        assert_eq!(too_large(br#"{"a": "x", "n": 18446744073709551616}"#), Some("18446744073709551616"));
        assert_eq!(too_large(br#"["\\", [-9223372036854775809]]"#), Some("-9223372036854775809"));
    }
}
