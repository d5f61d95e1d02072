use crate::world::*;
use mirab_flow::{Error, FlowSpec};

fn world() -> World {
    let mut world = World::new(1, &[], vec![flow("nightly"), flow("load")]);
    let of = |project: &str, name: &str| FlowSpec { project: project.into(), ..flow(name) };
    world.run(|o, now| o.set_flows(now, "lab", vec![of("lab", "nightly"), of("lab", "train")]));
    world
}

#[test]
fn a_flow_is_found_by_its_full_name_or_by_its_short_one_while_that_is_unique() {
    let world = world();
    let found = |name: &str| world.o().find_flow(name).map(FlowSpec::full_name);
    assert_eq!(found("train").unwrap(), "lab/train");
    assert_eq!(found("shop/nightly").unwrap(), "shop/nightly");
    let candidates = vec!["lab/nightly".to_owned(), "shop/nightly".to_owned()];
    assert_eq!(found("nightly"), Err(Error::AmbiguousFlow { name: "nightly".into(), candidates }));
    assert_eq!(found("nightly").unwrap_err().code(), "UnknownFlow");
}

#[test]
fn an_unknown_flow_is_told_with_near_names() {
    let world = world();
    let told = |name: &str| world.o().find_flow(name).unwrap_err().to_string();
    assert_eq!(told("trainn"), "no flow named \"trainn\" is served; did you mean lab/train?");
    assert_eq!(told("shop/lod"), "no flow named \"shop/lod\" is served; did you mean shop/load?");
    assert_eq!(told("completely-other"), "no flow named \"completely-other\" is served");
}
