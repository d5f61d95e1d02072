//! A scheduler as a file says.
use mirab::*;

async fn echo(_ctx: Context, n: u64) -> Result<u64, TaskError> {
    Ok(n)
}

fn file(text: &str) -> (tempfile::TempDir, std::path::PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("mirab.toml");
    std::fs::write(&path, text).unwrap();
    (dir, path)
}

const DESCRIBED: &str = r#"
[server]
port = 4747
[gate]
aging = "10m"
[resources]
db = 4
gpu = { kind = "semaphore", permits = 2 }
api = { kind = "token_bucket", rate = 50.0, burst = 100 }
"api:*" = 1
[pools.llm]
slots = 3
max_queued = 5
priority = 7
"#;

#[tokio::test]
async fn resources_and_pools_are_as_the_file_says() {
    let (_dir, path) = file(DESCRIBED);
    let scheduler = Scheduler::from_config(&path, [Pool::new("llm", echo).slots(99)]).unwrap();
    let task = Task::new(1_u64).resource("gpu", 2).resource("api", 100).resource("api:a", 1).resource("db", 4);
    let handle: Handle<u64> = scheduler.submit(task).unwrap();
    assert_eq!(handle.status().unwrap().priority, 7);
    assert_eq!(handle.await.unwrap(), 1);
    let refused = scheduler.submit::<u64>(Task::new(1_u64).resource("gpu", 3)).unwrap_err();
    assert_eq!(refused.code(), "ResourceExceedsCapacity");
    let spec = scheduler.snapshot().pools[0].spec.clone();
    assert_eq!((spec.slots, spec.max_queued), (3, Some(5)));
    scheduler.shutdown(std::time::Duration::ZERO).await;
}

#[tokio::test]
async fn shards_may_stand_in_the_file() {
    let (_dir, path) =
        file("[resources]\neu = { kind = \"semaphore\", permits = 1, shard = \"eu\" }\n[pools.p]\nshard = \"eu\"\n");
    let builder = Scheduler::paused().shards(["eu", "us"]).pool(Pool::new("p", echo)).config(&path);
    let scheduler = builder.start().unwrap();
    let handle: Handle<u64> = scheduler.submit(Task::new(1_u64).resource("eu", 1)).unwrap();
    assert_eq!(handle.await.unwrap(), 1);
}

#[tokio::test]
async fn what_is_wrong_is_told_with_its_place() {
    let told = |text: &str| {
        let (_dir, path) = file(text);
        let error = Scheduler::from_config(&path, [Pool::new("llm", echo)]).unwrap_err();
        assert_eq!(error.code(), "InvalidConfig", "{error}");
        error.to_string()
    };
    assert!(told("[pools.lm]\nslots = 1\n").contains("mirab.toml:1:8: pool \"lm\" has no executor"));
    assert!(told("[pools.llm]\nslot = 1\n").contains("did you mean slots?"));
    assert!(told("[pools.llm]\npriority = 1.5\n").contains("mirab.toml:2"));
    assert!(told("[resources]\napi = { kind = \"token_bucket\", rate = 0, burst = 1 }\n").contains("mirab.toml:2"));
    let missing = Scheduler::from_config("/nowhere/mirab.toml", [Pool::new("llm", echo)]).unwrap_err();
    assert!(missing.to_string().contains("cannot be read"), "{missing}");
}
