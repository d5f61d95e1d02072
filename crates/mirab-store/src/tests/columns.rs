//! Each value stands in the column of its name: writing and reading in the same wrong order would go unseen elsewhere.
use super::Home;
use mirab_core::{BucketState, ClaimId, Fence, Place, Time};
use mirab_flow::{
    BucketRecord, Counters, DurationsRecord, EventRecord, Fact, Failure, Journal, LearnerKind, LeaseRecord, RunRecord,
    State, TaskRecord,
};
use rusqlite::types::Value;
use serde_json::json;

/// The only row of a table, as `name=value` in the order of the columns; `NULL` is left out.
fn row(fact: Fact, table: &str) -> String {
    let home = Home::new();
    home.open().commit(&[fact]).unwrap();
    let conn = rusqlite::Connection::open(home.path()).unwrap();
    let mut statement = conn.prepare(&format!("SELECT * FROM {table}")).unwrap();
    let names: Vec<String> = statement.column_names().map(str::to_owned).collect();
    let values = statement.query_row([], |row| (0..names.len()).map(|at| row.get(at)).collect::<Result<Vec<_>, _>>());
    let pairs = names.iter().zip(values.unwrap()).filter_map(|(name, value)| match value {
        Value::Integer(number) => Some(format!("{name}={number}")),
        Value::Text(text) => Some(format!("{name}={text}")),
        _ => None,
    });
    pairs.collect::<Vec<_>>().join(" ")
}

fn place() -> Place {
    Place { seq: 101, call: 102, joined_at: Time(103) }
}

fn failure() -> Failure {
    Failure { kind: "K".into(), message: "M".into(), traceback: Some("T".into()) }
}

fn units(name: &str, units: u64) -> Vec<(String, u64)> {
    vec![(name.into(), units)]
}

#[test]
fn runs() {
    let run = RunRecord {
        id: ClaimId(1),
        project: "p".into(),
        flow: "f".into(),
        file: "f.py".into(),
        function: "fn".into(),
        params: json!({"a": 1}).as_object().unwrap().clone(),
        priority: -2,
        tags: vec!["t".into()],
        needs: units("db", 3),
        state: State::Running,
        message: Some("m".into()),
        attempt: 4,
        failures: 5,
        crashes: 6,
        retries: 7,
        retry_delay: 8,
        crash_retries: 9,
        place: Some(place()),
        created_at: Time(10),
        due_at: Time(11),
        started_at: Some(Time(12)),
        ended_at: Some(Time(13)),
        result: Some(json!("r")),
        error: Some(failure()),
        idempotency_key: Some("k".into()),
        delayed: vec!["d".into()],
    };
    let expected = "id=1 project=p flow=f file=f.py function=fn params={\"a\":1} priority=-2 tags=[\"t\"] \
                    needs=[[\"db\",3]] state=Running message=m attempt=4 failures=5 crashes=6 retries=7 retry_delay=8 \
                    crash_retries=9 place_seq=101 place_call=102 place_joined_at=103 created_at=10 due_at=11 \
                    started_at=12 ended_at=13 result=\"r\" error_kind=K error_message=M error_traceback=T \
                    idempotency_key=k delayed=[\"d\"]";
    assert_eq!(row(Fact::Run(Box::new(run)), "runs"), expected);
}

#[test]
fn tasks() {
    let task = TaskRecord {
        id: ClaimId(1),
        run: ClaimId(2),
        run_attempt: 3,
        key: "k".into(),
        name: "n".into(),
        needs: units("db", 4),
        parent: ClaimId(5),
        state: State::Failed,
        attempt: 6,
        retries: 7,
        retry_delay: 8,
        place: Some(place()),
        created_at: Time(9),
        due_at: Time(10),
        started_at: Some(Time(11)),
        ended_at: Some(Time(12)),
        error: Some(failure()),
        delayed: vec!["d".into()],
    };
    let expected = "id=1 run=2 run_attempt=3 key=k name=n needs=[[\"db\",4]] parent=5 state=Failed attempt=6 retries=7 \
                    retry_delay=8 place_seq=101 place_call=102 place_joined_at=103 created_at=9 due_at=10 \
                    started_at=11 ended_at=12 error_kind=K error_message=M error_traceback=T \
                    delayed=[\"d\"]";
    assert_eq!(row(Fact::Task(Box::new(task)), "task_runs"), expected);
}

#[test]
fn leases() {
    let lease = LeaseRecord {
        id: ClaimId(1),
        fence: Fence(2),
        kind: "k".into(),
        takes: units("db", 3),
        covered: vec![("gpu".into(), 4, ClaimId(5))],
        priority: -6,
        place: place(),
        parent: Some(ClaimId(7)),
        started_at: Time(8),
        worker: Some("w".into()),
        request_id: Some("r".into()),
        tokens: units("api", 9),
        shortest: 10,
        longest: Some(11),
        passed: vec![(ClaimId(12), "p".into())],
    };
    let expected = "id=1 fence=2 kind=k takes=[[\"db\",3]] covered=[[\"gpu\",4,5]] priority=-6 place_seq=101 place_call=102 \
                    place_joined_at=103 parent=7 started_at=8 worker=w request_id=r tokens=[[\"api\",9]] shortest=10 \
                    longest=11 passed=[[12,\"p\"]]";
    assert_eq!(row(Fact::Lease(lease), "leases"), expected);
}

#[test]
fn the_small_tables() {
    let event = EventRecord {
        seq: 1,
        at: Time(2),
        run: ClaimId(3),
        task: Some(ClaimId(4)),
        kind: "k".into(),
        state: Some(State::Waiting),
        reason: "r".into(),
        cause: "c".into(),
    };
    assert_eq!(row(Fact::Event(event), "events"), "seq=1 at=2 run=3 task=4 kind=k state=Waiting reason=r cause=c");
    let state = BucketState { scaled: -1, scale: 2, at: Time(3), cooling_until: Time(4) };
    let bucket = BucketRecord { name: "n".into(), state };
    assert_eq!(row(Fact::Bucket(bucket), "buckets"), "name=n scaled=-1 scale=2 at=3 cooling_until=4");
    let durations = DurationsRecord { learner: LearnerKind::Resource, name: "n".into(), recent: vec![1, 2] };
    assert_eq!(row(Fact::Durations(durations), "durations"), "learner=resource name=n recent=[1,2]");
    assert_eq!(row(Fact::Total("n".into(), 5), "totals"), "name=n most=5");
    let counters = Counters { next_id: 1, next_seq: 2, next_fence: 3, next_event: 4 };
    assert_eq!(row(Fact::Counters(counters), "counters"), "id=0 next_id=1 next_seq=2 next_fence=3 next_event=4");
}
