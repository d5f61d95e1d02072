//! Counters, settings and projects.
use super::samples::{Dice, counters};
use super::{Driver, commit, load, stored};
use mirab_flow::{Fact, ProjectRecord, Stored};

/// A new store holds nothing.
pub fn start_at_nothing<D: Driver>(driver: &mut D) {
    let mut journal = driver.create();
    assert_eq!(load(&mut journal), Stored::default());
    assert_eq!(load(&mut driver.reopen(journal)), Stored::default());
}

/// The last numbers count.
pub fn are_replaced<D: Driver>(driver: &mut D) {
    let mut journal = driver.create();
    for seed in 0..20 {
        commit(&mut journal, &[Fact::Counters(counters(&mut Dice::new(seed)))]);
        journal = driver.reopen(journal);
        assert_eq!(load(&mut journal).counters, counters(&mut Dice::new(seed)));
    }
}

/// Settings come in order of key and projects in order of name, each with its last value.
pub fn settings_and_projects_come_back_in_order<D: Driver>(driver: &mut D) {
    let setting = |key: &str, value: &str| Fact::Setting(key.to_owned(), value.to_owned());
    let project = |name: &str, path: &str| ProjectRecord { name: name.to_owned(), path: path.to_owned() };
    let facts = [
        setting("max_engines", "1"),
        setting("a'b", ""),
        Fact::Project(project("pipelines", "/old")),
        Fact::Project(project("nightly", "/srv/ağaç 🌳")),
        setting("max_engines", "4"),
        Fact::Project(project("pipelines", "/srv/pipelines")),
    ];
    let found = load(&mut stored(driver, &facts));
    let pair = |key: &str, value: &str| (key.to_owned(), value.to_owned());
    assert_eq!(found.settings, [pair("a'b", ""), pair("max_engines", "4")]);
    assert_eq!(found.projects, [project("nightly", "/srv/ağaç 🌳"), project("pipelines", "/srv/pipelines")]);
}
