//! `mirab run` with a real interpreter and the package of this repository.
mod scripted;

use scripted::{Said, TestHome, interpreter};

const FLOWS: &str = "
import asyncio, os
from mirab import flow, task

@task(resources={'db': 1})
def load(rows: int) -> int:
    print('loading')
    os.system('echo from a child')
    return rows

@flow(max_concurrent=1, on_overlap='skip', priority=5, resources={'gpu': 1})
def nightly(rows: int = 10) -> int:
    return load(rows)

@flow(name='by-name')
async def later(word):
    await asyncio.sleep(0)
    return {'word': word}

@flow
def broken():
    raise ValueError('no rows')

@flow
def odd():
    return object()
";

fn offline(args: &str) -> Said {
    let home = TestHome::new();
    std::fs::write(home.path().join("flows.py"), FLOWS).unwrap();
    home.command_with_python(args).output().unwrap().into()
}

#[test]
fn the_result_is_all_that_goes_to_standard_output() {
    let said = offline("run flows.py:nightly --param rows=3");
    assert_eq!((said.exit, said.out.as_str()), (0, "3\n"), "{}", said.err);
    assert_eq!(said.err, "loading\nfrom a child\n");
}

#[test]
fn defaults_and_async_flows_and_names_of_their_own() {
    assert_eq!(offline("run flows.py:nightly").out, "10\n");
    for name in ["by-name", "later"] {
        assert_eq!(offline(&format!("run flows.py:{name} -p word=çay")).out, "{\"word\": \"çay\"}\n");
    }
}

#[test]
fn a_flow_that_raises_is_told_without_the_frames_of_the_package() {
    let said = offline("run flows.py:broken");
    assert_eq!((said.exit, said.out.as_str()), (1, ""));
    assert!(said.err.ends_with("ValueError: no rows\n") && !said.err.contains("_execute.py"), "{}", said.err);
}

#[test]
fn wrong_names_and_parameters_are_usage_errors() {
    for (args, told) in [
        ("run flows.py:nightli", "did you mean 'nightly'?"),
        ("run flows.py:nightly -p rows=many", "parameter 'rows' of flow 'nightly' must be int"),
        ("run flows.py:nightly -p row=1", "has no parameter 'row'"),
        ("run nowhere.py:nightly", "nowhere.py is not a file"),
    ] {
        let said = offline(args);
        assert!(said.exit == 2 && said.err.contains(told), "{args}: {said:?}");
    }
}

#[test]
fn a_result_that_is_not_json_is_null_with_a_note() {
    let said = offline("run flows.py:odd");
    assert_eq!((said.exit, said.out.as_str()), (0, "null\n"));
    assert!(said.err.contains("the result is of type object"), "{}", said.err);
}

#[test]
fn an_interpreter_that_is_missing_or_lacks_the_package_is_a_set_up_error() {
    let said = offline("run flows.py:nightly --python /nowhere/python");
    assert!(said.exit == 5 && said.err.contains("/nowhere/python cannot be started"), "{said:?}");
    let home = TestHome::new();
    std::fs::write(home.path().join("flows.py"), FLOWS).unwrap();
    let bare = home.script("bare", &format!("exec {} -S \"$@\"", interpreter().display()));
    let mut command = home.command("run flows.py:nightly");
    // Only what comes with the interpreter.
    command.env_remove("PYTHONPATH").env("MIRAB_PYTHON", bare);
    let said = Said::from(command.output().unwrap());
    assert!(said.exit == 5 && said.err.contains("hint: install it there"), "{said:?}");
}
