//! `mirab resources`: all limits and their use, one with its holders, and changing them.
use crate::commands::why::holding;
use crate::failure::{Exit, Failure};
use crate::output::clean;
use crate::session::Session;
use crate::table::Table;
use crate::when::now;
use mirab_client::{Client, ClientError};
use mirab_server::{Offline, OfflineError, ServeError};
use mirab_wire::{Resource, ResourceChange, ResourceDetail};
use std::path::Path;

/// List resources and their use, or one of them with who holds it
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Args {
    /// Show this one with its holders and waiters
    name: Option<String>,
    #[command(subcommand)]
    action: Option<Action>,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// Declare a resource, or give one another limit; written to the file that declares it, also while no server runs
    Set(Set),
    /// Take a resource away that nobody holds or waits for
    Delete {
        /// Its name or pattern
        name: String,
    },
    /// Say which declaration a name goes by, and why
    Resolve {
        /// A name as work asks for it
        name: String,
    },
}

#[derive(Debug, clap::Args)]
struct Set {
    /// Its name, or a pattern with one `*`
    name: String,
    /// Permits of a semaphore; 0 pauses it
    #[arg(required_unless_present_any = ["rate", "burst"], conflicts_with_all = ["rate", "burst"])]
    permits: Option<u64>,
    /// Tokens per second of a token bucket
    #[arg(long, value_parser = rate)]
    rate: Option<f64>,
    /// Most tokens of a token bucket
    #[arg(long)]
    burst: Option<u64>,
    /// Shard of a new resource
    #[arg(long)]
    shard: Option<String>,
}

/// JSON has no word for what is not finite: it would be left out.
fn rate(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(rate) if rate.is_finite() && rate > 0.0 => Ok(rate),
        _ => Err("expected a number of tokens per second above 0, such as 50 or 0.5".into()),
    }
}

pub(crate) fn execute(args: &Args, session: &mut Session) -> Result<Exit, Failure> {
    match (&args.action, &args.name) {
        (Some(Action::Set(set)), _) => change(set, session),
        (Some(Action::Delete { name }), _) => delete(name, session),
        (Some(Action::Resolve { name }), _) => resolve(name, session),
        (None, Some(name)) => show_one(name, session),
        (None, None) => show_all(session),
    }
}

/// What is left out of a known resource stays; a new one needs all that its kind needs.
fn change(set: &Set, session: &mut Session) -> Result<Exit, Failure> {
    let Set { name, permits, rate, burst, shard } = set;
    let change = ResourceChange { kind: None, permits: *permits, rate: *rate, burst: *burst, shard: shard.clone() };
    let detail =
        with_or_without_server(session, |client| put(client, name, &change), |files| files.set(name, change.clone()))?;
    tell(&detail, session)
}

fn put(client: &Client, name: &str, change: &ResourceChange) -> mirab_client::Result<ResourceDetail> {
    match client.patch_resource(name, change) {
        Err(ClientError::Problem(problem)) if change.is_whole() && problem.code == "UnknownResource" => {
            client.put_resource(name, change)
        }
        changed => changed,
    }
}

fn delete(name: &str, session: &mut Session) -> Result<Exit, Failure> {
    with_or_without_server(session, |client| client.delete_resource(name), |files| files.delete(name))?;
    if !session.out.json {
        session.out.line(format!("{} is declared no more", clean(name)))?;
    }
    Ok(Exit::Success)
}

/// Asks the server of the home. Where there is none, the home is held and the files are changed.
fn with_or_without_server<R>(
    session: &Session,
    ask: impl Fn(&Client) -> mirab_client::Result<R>,
    edit: impl FnOnce(Offline) -> Result<R, OfflineError>,
) -> Result<R, Failure> {
    let home = session.home()?;
    let ask = || Client::of_home(&home).and_then(|client| ask(&client));
    match ask() {
        Err(ClientError::NoServer { .. } | ClientError::Unreachable { .. }) => {}
        answered => return Ok(answered?),
    }
    match Offline::open(home.path(), Path::new(".")) {
        // One that was just starting answers by now, one that is stuck does not.
        Err(OfflineError::SetUp(ServeError::AlreadyServing { .. })) => Ok(ask()?),
        opened => {
            let edited = opened.and_then(edit).map_err(offline_failure)?;
            eprintln!("note: no server is running on this home: the file was changed, and counts from the next start");
            Ok(edited)
        }
    }
}

fn offline_failure(error: OfflineError) -> Failure {
    match error {
        OfflineError::SetUp(error) => super::serve::refused(error),
        OfflineError::Refused(problem) => ClientError::Problem(problem).into(),
    }
}

fn resolve(name: &str, session: &mut Session) -> Result<Exit, Failure> {
    let found = session.client()?.resolve(name)?;
    if session.out.json {
        session.out.json(&found)?;
        return Ok(Exit::Success);
    }
    let place = |origin: &Option<String>| origin.as_deref().map_or(String::new(), |origin| format!(" ({origin})"));
    let (name, winner) = (clean(&found.name), clean(&found.declared_as));
    session.out.line(format!("{name}: {}, as {winner}{}: {}", found.limit, place(&found.origin), found.why))?;
    for loser in &found.losers {
        session.out.line(format!("  not {}{}: {}", clean(&loser.declared_as), place(&loser.origin), loser.why))?;
    }
    Ok(Exit::Success)
}

fn show_all(session: &mut Session) -> Result<Exit, Failure> {
    let list = session.client()?.resources()?;
    if session.out.json {
        session.out.json(&list)?;
        return Ok(Exit::Success);
    }
    let mut table = Table::new(&["NAME", "KIND", ">TOTAL", ">USED", ">FREE", ">WAITERS", "DECLARED"]);
    for each in &list.resources {
        table.row([
            each.name.clone(),
            kind(each),
            total(each),
            each.used.to_string(),
            each.free.to_string(),
            each.waiters.to_string(),
            origin(each),
        ]);
    }
    if table.is_empty() {
        session.out.line("no resources")?
    } else {
        session.out.table(&table)?
    }
    Ok(Exit::Success)
}

fn show_one(name: &str, session: &mut Session) -> Result<Exit, Failure> {
    let detail = session.client()?.resource(name)?;
    tell(&detail, session)
}

fn tell(detail: &ResourceDetail, session: &mut Session) -> Result<Exit, Failure> {
    if session.out.json {
        session.out.json(detail)?;
        return Ok(Exit::Success);
    }
    detail_lines(detail, now()).into_iter().try_for_each(|line| session.out.line(line))?;
    Ok(Exit::Success)
}

fn detail_lines(detail: &ResourceDetail, now: f64) -> Vec<String> {
    let resource = &detail.resource;
    let mut lines = vec![
        format!("{}: {}, {}", clean(&resource.name), kind(resource), total(resource)),
        format!("  declared  {}", clean(&origin(resource))),
        format!("  used      {}", resource.used),
        format!("  free      {}", resource.free),
    ];
    match detail.holders.as_slice() {
        [] => lines.push("  held by   nobody".into()),
        holders => lines.extend(holders.iter().map(|holder| format!("  held by   {}", holding(holder, now)))),
    }
    lines.push(match resource.waiters {
        0 => "  waiters   none".into(),
        count => format!("  waiters   {count}, first in line: {}", first(detail)),
    });
    lines
}

fn first(detail: &ResourceDetail) -> String {
    const SHOWN: usize = 10;
    let ids: Vec<String> = detail.first_waiters.iter().take(SHOWN).map(u64::to_string).collect();
    ids.join(", ")
}

fn kind(resource: &Resource) -> String {
    resource.kind.replace('_', " ")
}

/// `4`, or `50/s, burst 100`; a pattern shows what each matching name gets.
fn total(resource: &Resource) -> String {
    match (resource.permits, resource.rate, resource.burst) {
        (Some(0), _, _) => "0 (paused)".into(),
        (Some(permits), _, _) => permits.to_string(),
        (None, Some(rate), Some(burst)) => format!("{rate}/s, burst {burst}"),
        _ => "-".into(),
    }
}

/// Without a place: a limit of the product's own, or a name that only stored work knows.
fn origin(resource: &Resource) -> String {
    let is_own = ["pool:", "flow:", "backfill:"].iter().any(|own| resource.name.starts_with(own));
    let nowhere = if is_own { "by mirab itself" } else { "no more: declare it again" };
    let place = resource.origin.as_deref().unwrap_or(nowhere);
    if resource.declared_as == resource.name { place.into() } else { format!("{place} as {}", resource.declared_as) }
}
