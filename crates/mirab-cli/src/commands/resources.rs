//! `mirab resources`: all limits and their use, or one with its holders.
use crate::commands::why::holding;
use crate::failure::{Exit, Failure};
use crate::output::clean;
use crate::session::Session;
use crate::table::Table;
use crate::when::now;
use mirab_wire::{Resource, ResourceDetail};

/// List resources and their use, or one of them with who holds it
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Show this one with its holders and waiters
    name: Option<String>,
}

pub(crate) fn execute(args: &Args, session: &mut Session) -> Result<Exit, Failure> {
    match &args.name {
        Some(name) => show_one(name, session),
        None => show_all(session),
    }
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
    if session.out.json {
        session.out.json(&detail)?;
        return Ok(Exit::Success);
    }
    detail_lines(&detail, now()).into_iter().try_for_each(|line| session.out.line(line))?;
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
        (Some(permits), _, _) => permits.to_string(),
        (None, Some(rate), Some(burst)) => format!("{rate}/s, burst {burst}"),
        _ => "-".into(),
    }
}

fn origin(resource: &Resource) -> String {
    let place = resource.origin.as_deref().unwrap_or("by mirab itself");
    if resource.declared_as == resource.name { place.into() } else { format!("{place} as {}", resource.declared_as) }
}
