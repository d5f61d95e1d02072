//! `mirab flows`: what is served, and the files that did not import.
use crate::failure::{Exit, Failure};
use crate::output::clean;
use crate::session::Session;
use crate::table::Table;
use mirab_wire::{Flow, FlowList, Needs, Param};

/// List the flows, and the files that did not import
#[derive(Debug, clap::Args)]
pub(crate) struct Args {}

pub(crate) fn execute(_args: &Args, session: &mut Session) -> Result<Exit, Failure> {
    let list = session.client()?.flows()?;
    if session.out.json {
        session.out.json(&list)?;
        return Ok(Exit::Success);
    }
    match list.flows.as_slice() {
        [] => session.out.line(format!("no flows in {}", paths(&list)))?,
        flows => session.out.table(&table(flows))?,
    }
    for project in &list.projects {
        for broken in &project.broken {
            let (file, error) = (clean(&broken.file), &broken.error);
            let told = clean(&error.message);
            session.out.line(format!(
                "{}/{file} did not import: {}: {told}",
                clean(&project.path),
                clean(&error.kind)
            ))?;
        }
    }
    Ok(Exit::Success)
}

fn paths(list: &FlowList) -> String {
    let paths: Vec<String> = list.projects.iter().map(|project| clean(&project.path)).collect();
    if paths.is_empty() { "no directory".into() } else { paths.join(", ") }
}

fn table(flows: &[Flow]) -> Table {
    let mut table = Table::new(&["FLOW", "PARAMS", ">PRIO", ">CAP", "OVERLAP", "RESOURCES", ">LIVE", "FILE"]);
    let mut flows: Vec<&Flow> = flows.iter().collect();
    flows.sort_by_key(|flow| (&flow.project, &flow.found.name));
    for flow in flows {
        let options = &flow.found.options;
        table.row([
            format!("{}/{}", flow.project, flow.found.name),
            params(&flow.found.params, flow.found.any_params),
            options.priority.to_string(),
            options.max_concurrent.map_or_else(|| "-".into(), |cap| cap.to_string()),
            options.on_overlap.clone(),
            needs(&options.resources),
            flow.live_runs.to_string(),
            flow.found.file.clone(),
        ]);
    }
    table
}

/// `rows=10 day ...`: as they would be given, without a value where one is required.
fn params(params: &[Param], any: bool) -> String {
    let one = |param: &Param| match &param.default {
        Some(default) => format!("{}={default}", param.name),
        None if param.required => param.name.clone(),
        None => format!("{}=", param.name),
    };
    dash_if_none(params.iter().map(one).chain(any.then(|| "...".to_owned())).collect())
}

fn needs(needs: &Needs) -> String {
    dash_if_none(needs.iter().map(|(name, units)| format!("{name}={units}")).collect())
}

fn dash_if_none(words: Vec<String>) -> String {
    if words.is_empty() { "-".into() } else { words.join(" ") }
}
