//! Runs: create, list, show, cancel, change.
use super::App;
use super::convert::{self, word};
use super::extract::{Args, Body, ExactBody, Segment};
use super::problem::{ApiError, ApiResult};
use crate::params;
use axum::Json;
use axum::extract::State as Shared;
use axum::http::StatusCode;
use mirab_core::{ClaimId, Time};
use mirab_flow::{Created, Error, NewRun, Orchestrator, RunRecord, STATES, Shown, State, plain_needs};
use mirab_store::RunFilter;
use mirab_wire as wire;
use serde::Deserialize;
use std::collections::BTreeMap;
use utoipa::IntoParams;

const PAGE: u32 = 100;
const LARGEST_PAGE: u32 = 1_000;

/// Which runs to list.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct ListArgs {
    /// States, separated by commas.
    state: Option<String>,
    /// Short name of a flow, or `project/flow`.
    flow: Option<String>,
    /// Name of a project.
    project: Option<String>,
    /// At most so many, from 1 to 1000; 100 when left out.
    limit: Option<u32>,
    /// `next_cursor` of the page before.
    cursor: Option<u64>,
}

/// Create a run
///
/// The same idempotency key with the same body gives the same run again.
#[utoipa::path(post, path = "/api/runs", tag = "runs", request_body = wire::CreateRun, responses(
    (status = 201, description = "The new run", body = wire::Run),
    (status = 200, description = "The run that this key made before", body = wire::Run),
    (status = "default", description = "A problem", body = wire::Problem, content_type = "application/problem+json"),
))]
pub(crate) async fn create(
    Shared(app): Shared<App>,
    ExactBody(request): ExactBody<wire::CreateRun>,
) -> ApiResult<(StatusCode, Json<wire::Run>)> {
    let due_at = request.scheduled_at.map(instant).transpose()?;
    let catalog = app.catalog.clone();
    let asked = request.clone();
    let created = app.host.call(move |orchestrator, now| {
        let flow = orchestrator.find_flow(&asked.flow)?;
        let (project, name) = (flow.project.clone(), flow.name.clone());
        let found = crate::catalog::read(&catalog).flow(&project, &name).cloned();
        let found = found.ok_or_else(|| ApiError::unknown_flow(format!("flow {project}/{name} is not served")))?;
        params::check(&found, &asked.params).map_err(ApiError::invalid_params)?;
        let new = new_run(asked, due_at);
        let needs = plain_needs(&new.needs, &new.params, &flow.defaults)?;
        let created = orchestrator.create_run(now, new)?;
        Ok::<_, ApiError>(match created {
            Created::New(record) => Ok(shown(orchestrator, *record)),
            Created::Existing(id) => Err((id, format!("{project}/{name}"), needs)),
        })
    });
    match created.await?? {
        Ok(run) => Ok((StatusCode::CREATED, Json(run))),
        Err((id, flow, needs)) => Ok((StatusCode::OK, Json(same_again(&app, id, &flow, &needs, request).await?))),
    }
}

fn new_run(request: wire::CreateRun, due_at: Option<Time>) -> NewRun {
    NewRun {
        flow: request.flow,
        params: request.params,
        priority: request.priority,
        tags: request.tags,
        needs: request.resources.into_iter().collect(),
        due_at,
        idempotency_key: request.idempotency_key,
    }
}

fn instant(seconds: f64) -> ApiResult<Time> {
    let nanos = crate::discovery::nanos(seconds).map(Time);
    nanos.ok_or_else(|| ApiError::bad_request(format!("scheduled_at is {seconds}, expected seconds since 1970")))
}

/// The run that a key made before, when this is the same request; `needs` are what it asks for, as plain names.
async fn same_again(
    app: &App,
    id: ClaimId,
    flow: &str,
    needs: &BTreeMap<String, u64>,
    request: wire::CreateRun,
) -> ApiResult<wire::Run> {
    let run = find(app, id.0).await?;
    let same_flow = format!("{}/{}", run.project, run.flow) == flow;
    // One that was edited since makes no other request.
    let same_rank = match request.priority {
        Some(priority) if priority != run.priority => was_reprioritised(app, id).await?,
        _ => true,
    };
    let same_tags = request.tags.iter().all(|tag| run.tags.contains(tag));
    let same_needs = needs.iter().all(|(name, units)| run.needs.get(name) == Some(units));
    if same_flow && same_rank && same_tags && same_needs && request.params == run.params {
        return Ok(run);
    }
    let key = request.idempotency_key.unwrap_or_default();
    Err(ApiError::bad_request(format!(
        "the idempotency key {key:?} made run {id} from another request: use a new key",
        id = id.0
    )))
}

async fn was_reprioritised(app: &App, id: ClaimId) -> ApiResult<bool> {
    let reader = app.reader.clone();
    let events = blocking(move || reader.events(id, 0, u32::MAX)).await??;
    Ok(events.iter().any(|event| event.kind == "run.priority"))
}

/// List runs, newest first
#[utoipa::path(get, path = "/api/runs", tag = "runs", params(ListArgs), responses(
    (status = 200, description = "A page of runs", body = wire::RunList),
    (status = "default", description = "A problem", body = wire::Problem, content_type = "application/problem+json"),
))]
pub(crate) async fn list(Shared(app): Shared<App>, Args(args): Args<ListArgs>) -> ApiResult<Json<wire::RunList>> {
    let words = words(args.state.as_deref())?;
    let filter = filter(args, &words)?;
    let limit = filter.limit as usize;
    let reader = app.reader.clone();
    let records = blocking(move || reader.runs(&filter)).await??;
    let next_cursor = records.last().filter(|_| records.len() == limit).map(|last| last.id.0);
    let runs = all_shown(&app, records).await?;
    let is_wanted = |run: &wire::Run| words.is_empty() || words.contains(&run.state);
    Ok(Json(wire::RunList { runs: runs.into_iter().filter(is_wanted).collect(), next_cursor }))
}

/// The states asked for, as they are shown.
fn words(asked: Option<&str>) -> ApiResult<Vec<String>> {
    let Some(asked) = asked else { return Ok(Vec::new()) };
    let known: Vec<&str> = ["Queued", "AwaitingResource"]
        .into_iter()
        .chain(STATES.iter().map(|(_, word)| *word).filter(|word| *word != "Waiting"))
        .collect();
    let words: Vec<String> = asked.split(',').map(|word| word.trim().to_owned()).collect();
    match words.iter().find(|word| !known.contains(&word.as_str())) {
        Some(unknown) => {
            Err(ApiError::bad_request(format!("{unknown:?} is no state, expected one of {}", known.join(", "))))
        }
        None => Ok(words),
    }
}

fn filter(args: ListArgs, words: &[String]) -> ApiResult<RunFilter> {
    let limit = args.limit.unwrap_or(PAGE);
    if !(1..=LARGEST_PAGE).contains(&limit) {
        return Err(ApiError::bad_request(format!("limit is {limit}, expected 1 to {LARGEST_PAGE}")));
    }
    let stored = |word: &String| {
        if matches!(word.as_str(), "Queued" | "AwaitingResource") { Some(State::Waiting) } else { word.parse().ok() }
    };
    let (project, flow) = match args.flow.as_deref().and_then(|flow| flow.split_once('/')) {
        Some((project, flow)) => (Some(project.to_owned()), Some(flow.to_owned())),
        None => (args.project, args.flow),
    };
    Ok(RunFilter {
        states: words.iter().filter_map(stored).collect(),
        project,
        flow,
        limit,
        before: args.cursor.map(ClaimId),
    })
}

/// Show a run
#[utoipa::path(get, path = "/api/runs/{id}", tag = "runs", params(("id" = u64, Path, description = "Id of the run")), responses(
    (status = 200, description = "The run", body = wire::Run),
    (status = "default", description = "A problem", body = wire::Problem, content_type = "application/problem+json"),
))]
pub(crate) async fn get(Shared(app): Shared<App>, Segment(id): Segment<u64>) -> ApiResult<Json<wire::Run>> {
    Ok(Json(find(&app, id).await?))
}

/// Cancel a run
///
/// A run that waits ends at once; one that executes is asked to stop. Cancelling again, or after the end, changes nothing.
#[utoipa::path(post, path = "/api/runs/{id}/cancel", tag = "runs", params(("id" = u64, Path, description = "Id of the run")), responses(
    (status = 200, description = "The run as it stands now", body = wire::Run),
    (status = "default", description = "A problem", body = wire::Problem, content_type = "application/problem+json"),
))]
pub(crate) async fn cancel(Shared(app): Shared<App>, Segment(id): Segment<u64>) -> ApiResult<Json<wire::Run>> {
    let cancelled = app.host.call(move |orchestrator, now| {
        orchestrator.cancel_run(now, ClaimId(id), "api").map(|record| shown(orchestrator, record))
    });
    match cancelled.await? {
        Ok(run) => Ok(Json(run)),
        Err(Error::UnknownRun(_)) => Ok(Json(find(&app, id).await?)),
        Err(error) => Err(error.into()),
    }
}

/// Change the priority of a run that has not ended
///
/// One that waits moves in the line at once; for one that executes it counts from its next attempt on.
#[utoipa::path(patch, path = "/api/runs/{id}", tag = "runs", request_body = wire::PatchRun,
    params(("id" = u64, Path, description = "Id of the run")), responses(
    (status = 200, description = "The run as it stands now", body = wire::Run),
    (status = "default", description = "A problem", body = wire::Problem, content_type = "application/problem+json"),
))]
pub(crate) async fn patch(
    Shared(app): Shared<App>,
    Segment(id): Segment<u64>,
    Body(patch): Body<wire::PatchRun>,
) -> ApiResult<Json<wire::Run>> {
    let changed = app.host.call(move |orchestrator, now| {
        orchestrator.set_priority(now, ClaimId(id), patch.priority, "api").map(|record| shown(orchestrator, record))
    });
    match changed.await? {
        Ok(run) => Ok(Json(run)),
        Err(Error::UnknownRun(_)) => Err(ApiError::run_ended(&stored(&app, id).await?)),
        Err(error) => Err(error.into()),
    }
}

/// A live run as the machines have it, else an ended one as it is stored.
pub(super) async fn find(app: &App, id: u64) -> ApiResult<wire::Run> {
    let live = app.host.query(move |orchestrator, _| {
        let record = orchestrator.run(ClaimId(id)).cloned();
        record.map(|record| shown(orchestrator, record))
    });
    // While the machines cannot be asked the store still can.
    if let Ok(Some(run)) = live.await {
        return Ok(run);
    }
    let record = stored(app, id).await?;
    let shown = word(record.state, None);
    Ok(convert::run(record, shown))
}

pub(super) async fn stored(app: &App, id: u64) -> ApiResult<RunRecord> {
    read(app, id).await?.ok_or_else(|| ApiError::unknown_run(id))
}

/// A run as it is stored.
pub(super) async fn read(app: &App, id: u64) -> ApiResult<Option<RunRecord>> {
    let reader = app.reader.clone();
    Ok(blocking(move || reader.run(ClaimId(id))).await??)
}

fn shown(orchestrator: &Orchestrator, record: RunRecord) -> wire::Run {
    let shown = word(record.state, orchestrator.shown_state(record.id));
    convert::run(record, shown)
}

/// Tells Queued from AwaitingResource for all of a page at once.
async fn all_shown(app: &App, records: Vec<RunRecord>) -> ApiResult<Vec<wire::Run>> {
    let waiting: Vec<ClaimId> = records.iter().filter(|run| run.state == State::Waiting).map(|run| run.id).collect();
    let shown = shown_states(app, waiting).await;
    Ok(records
        .into_iter()
        .map(|run| {
            let word = word(run.state, shown.get(&run.id).copied());
            convert::run(run, word)
        })
        .collect())
}

/// What the machines say of them now.
pub(super) async fn shown_states(app: &App, ids: Vec<ClaimId>) -> BTreeMap<ClaimId, Shown> {
    if ids.is_empty() {
        return Default::default();
    }
    let asked = app.host.query(move |orchestrator, _| {
        ids.into_iter().filter_map(|id| Some((id, orchestrator.shown_state(id)?))).collect()
    });
    asked.await.unwrap_or_default()
}

/// Reads from the disk without holding the others up.
pub(super) async fn blocking<R: Send + 'static>(read: impl FnOnce() -> R + Send + 'static) -> ApiResult<R> {
    tokio::task::spawn_blocking(read).await.map_err(|error| ApiError::internal(&error))
}
