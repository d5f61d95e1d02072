//! Queries stay fast when there are many runs: they walk an index, sort nothing, and stop early.
use super::Home;
use crate::RunFilter;
use crate::tables::{runs, tasks};
use mirab_core::ClaimId;
use mirab_flow::State;
use rusqlite::Connection;

fn plan(sql: &str) -> String {
    let home = Home::new();
    drop(home.open());
    let conn = Connection::open(home.path()).unwrap();
    let mut statement = conn.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
    let nulls = vec![rusqlite::types::Null; statement.parameter_count()];
    let steps = statement.query_map(rusqlite::params_from_iter(nulls), |row| row.get(3)).unwrap();
    steps.map(Result::unwrap).collect::<Vec<String>>().join("\n")
}

#[test]
fn the_live_runs_are_those_that_are_not_terminal() {
    for (state, word) in mirab_flow::STATES {
        assert_eq!(runs::LIVE.contains(&format!("'{word}'")), state.is_terminal(), "{word}");
    }
}

#[test]
fn a_start_looks_at_live_runs_only() {
    let plan_of_runs = plan(&runs::live_sql());
    assert!(plan_of_runs.contains("INDEX runs_live") && !plan_of_runs.contains("TEMP"), "{plan_of_runs}");
    let plan_of_tasks = plan(&tasks::live_sql());
    let steps = ["INDEX runs_live", "SEARCH task USING INDEX task_runs_by_run"];
    assert!(steps.iter().all(|step| plan_of_tasks.contains(step)), "{plan_of_tasks}");
}

#[test]
fn no_list_of_runs_is_sorted() {
    let (some, none) = (Some(String::from("x")), None);
    for states in [vec![], vec![State::Running], vec![State::Running, State::Failed, State::Waiting]] {
        for (project, flow) in [(&none, &none), (&some, &none), (&none, &some), (&some, &some)] {
            for before in [None, Some(ClaimId(9))] {
                let (states, project, flow) = (states.clone(), project.clone(), flow.clone());
                let filter = RunFilter { states, project, flow, before, ..RunFilter::default() };
                let plan = plan(&runs::list_sql(&filter));
                assert!(!plan.contains("TEMP B-TREE"), "{filter:?}\n{plan}");
            }
        }
    }
}

#[test]
fn states_and_flows_are_found_by_their_index() {
    let both = RunFilter { project: Some("p".into()), flow: Some("f".into()), ..RunFilter::default() };
    assert!(plan(&runs::list_sql(&both)).contains("runs_by_flow (project=? AND flow=?)"));
    let failed = RunFilter { states: vec![State::Failed], ..RunFilter::default() };
    assert!(plan(&runs::list_sql(&failed)).contains("runs_by_state (state=?)"));
    let live = RunFilter { states: vec![State::Running, State::Waiting], ..both };
    assert!(plan(&runs::list_sql(&live)).contains("runs_by_state (state=?)"));
    let by_key = "SELECT id FROM runs WHERE idempotency_key = ?";
    assert!(plan(by_key).contains("runs_by_key"));
}
