//! Why the gate refuses something; each kind has a stable code.
use crate::ids::ClaimId;
use std::fmt;

/// A refused submission or declaration. Nothing was changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// No declaration matches the name.
    UnknownResource {
        /// The name asked for.
        name: String,
        /// The nearest declared names, best first.
        near: Vec<String>,
    },
    /// More units than the resource has in all, or than the run holds.
    ResourceExceedsCapacity {
        /// The resource.
        name: String,
        /// Units asked for, summed over the request.
        need: u64,
        /// `permits`, `burst`, or what the run holds.
        capacity: u64,
        /// True when it is the enclosing body that holds too little.
        held_by_run: bool,
    },
    /// Zero units, a bad or reserved name, a bad rate or burst.
    InvalidResource {
        /// The resource.
        name: String,
        /// What is wrong and what was expected.
        why: String,
    },
    /// The resource belongs to another shard.
    ResourceOnOtherShard {
        /// The resource.
        name: String,
        /// Its shard.
        shard: String,
    },
    /// Waiting would close a circle of runs that wait for each other.
    ResourceDeadlock {
        /// Who waits for whom in it.
        circle: Vec<InCircle>,
    },
    /// It is held or waited for, and cannot be deleted.
    ResourceInUse {
        /// The resource or pattern.
        name: String,
        /// Leases that hold units.
        holders: u64,
        /// Claims that wait for it.
        waiters: u64,
    },
    /// A name's template is malformed, or a field of it is missing or empty.
    TemplateError {
        /// The template.
        name: String,
        /// What is wrong and what was expected.
        why: String,
    },
    /// The claim id waits or holds already, or its parent holds nothing: an error of the host.
    InvalidClaim {
        /// What is wrong.
        why: String,
    },
}

/// A waiting task of a circle, and what the bodies around it hold meanwhile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InCircle {
    /// The waiting task.
    pub task: ClaimId,
    /// The outermost body around it.
    pub run: ClaimId,
    /// Resources that the bodies around it hold.
    pub holds: Vec<String>,
    /// Resources it waits for.
    pub wants: Vec<String>,
}

impl Refusal {
    /// `InvalidResource` for `name`.
    pub fn invalid(name: impl Into<String>, why: impl Into<String>) -> Self {
        Refusal::InvalidResource { name: name.into(), why: why.into() }
    }

    /// The stable code, as in `docs/reference/errors.md`.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Refusal::UnknownResource { .. } => "UnknownResource",
            Refusal::ResourceExceedsCapacity { .. } => "ResourceExceedsCapacity",
            Refusal::InvalidResource { .. } => "InvalidResource",
            Refusal::ResourceOnOtherShard { .. } => "ResourceOnOtherShard",
            Refusal::ResourceDeadlock { .. } => "ResourceDeadlock",
            Refusal::ResourceInUse { .. } => "ResourceInUse",
            Refusal::TemplateError { .. } => "TemplateError",
            Refusal::InvalidClaim { .. } => "InvalidClaim",
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refusal::UnknownResource { name, near } => {
                write!(f, "no resource or pattern named {name:?} is declared")?;
                match near.as_slice() {
                    [] => write!(f, "; declare it first (for a server under [resources] in mirab.toml)"),
                    near => write!(
                        f,
                        "; did you mean {}? Else declare it first (for a server under [resources] in mirab.toml)",
                        near.join(" or ")
                    ),
                }
            }
            Refusal::ResourceExceedsCapacity { name, need, capacity, held_by_run: true } => {
                write!(
                    f,
                    "a task wants {need} of {name:?}, of which the run or task around it holds {capacity}: let that ask for {need}"
                )
            }
            Refusal::ResourceExceedsCapacity { name, need, capacity, held_by_run: false } => {
                let are = if *capacity == 1 { "is" } else { "are" };
                write!(
                    f,
                    "{need} of {name:?} were asked for, but there {are} {capacity} in all: ask for less, or raise the total"
                )
            }
            Refusal::InvalidResource { name, why } => write!(f, "resource {name:?}: {why}"),
            Refusal::ResourceOnOtherShard { name, shard } => {
                write!(
                    f,
                    "resource {name:?} belongs to shard {shard:?}, whose work alone may use it: declare one here with its share of the limit"
                )
            }
            Refusal::ResourceDeadlock { circle } => {
                let one = |at: &InCircle| {
                    let (holds, wants) = (at.holds.join(", "), at.wants.join(", "));
                    format!("#{} holds {holds} and its task #{} waits for {wants}", at.run.0, at.task.0)
                };
                let told: Vec<String> = circle.iter().map(one).collect();
                write!(f, "waiting here would never end: {}", told.join("; "))
            }
            Refusal::ResourceInUse { name, holders, waiters } => {
                write!(
                    f,
                    "resource {name:?} is held by {holders} and waited for by {waiters}: set its total to 0 and let them end first"
                )
            }
            Refusal::TemplateError { name, why } => write!(f, "resource name {name:?}: {why}"),
            Refusal::InvalidClaim { why } => f.write_str(why),
        }
    }
}

impl std::error::Error for Refusal {}
