use super::files::{Files, Looks, take_back};
use super::wanted::{Edit, EditError};
use mirab_core::ResourceConfig;
use std::path::Path;
use tempfile::TempDir;

const SHOP: &str = "[resources]\ndb = 2   # shared\nold = 1\n";

fn files() -> (TempDir, Files) {
    let dir = tempfile::tempdir().unwrap();
    for name in ["shop", "home"] {
        std::fs::create_dir(dir.path().join(name)).unwrap();
    }
    put(&dir, "shop", SHOP);
    let files = Files::new([dir.path().join("shop")], &dir.path().join("home"));
    (dir, files)
}

fn path(dir: &TempDir, name: &str) -> std::path::PathBuf {
    dir.path().join(name).join("mirab.toml")
}

fn put(dir: &TempDir, name: &str, text: &str) {
    std::fs::write(path(dir, name), text).unwrap();
}

fn text(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap()
}

fn set(name: &str, permits: u64) -> Edit {
    Edit::Set(ResourceConfig::semaphore(name, permits))
}

fn conflict<T: std::fmt::Debug>(written: Result<T, EditError>) -> String {
    match written {
        Err(EditError::Conflict(why)) => why,
        other => panic!("expected a conflict, got {other:?}"),
    }
}

#[test]
fn case_r15_what_was_edited_by_hand_is_not_overwritten_unseen() {
    let (dir, files) = files();
    let known = files.read().unwrap();
    let edited = "[resources]\ndb = 9   # shared\nnew = 7\n";
    put(&dir, "shop", edited);
    // Changed by hand, new by hand, and gone by hand: both values are told, and the place.
    let told = conflict(files.write(&set("db", 5), &known));
    assert!(told.contains("a semaphore of 9 at") && told.contains("mirab.toml:2"), "{told}");
    assert!(told.contains("a semaphore of 2 in force"), "{told}");
    let told = conflict(files.write(&set("new", 5), &known));
    assert!(told.contains("a semaphore of 7 at") && told.contains("not declared in force"), "{told}");
    let told = conflict(files.write(&set("old", 5), &known));
    assert!(told.contains("not declared in the files") && told.contains("a semaphore of 1 in force"), "{told}");
    conflict(files.write(&Edit::Remove("db".into()), &known));
    assert_eq!(text(&path(&dir, "shop")), edited);
    assert!(!path(&dir, "home").exists());
    // Another name is changed, and the edit by hand is there still; both are to be taken over.
    let (_, declared) = files.write(&set("other", 3), &known).unwrap();
    assert_eq!(text(&path(&dir, "shop")), edited);
    assert_eq!(
        declared.configs().iter().map(|config| config.name.as_str()).collect::<Vec<_>>(),
        ["db", "new", "other"]
    );
}

#[test]
fn every_file_that_declares_the_name_is_written_or_none() {
    let (dir, files) = files();
    put(&dir, "home", "[resources]\ndb = 2\n");
    let known = files.read().unwrap();
    let (written, _) = files.write(&set("db", 5), &known).unwrap();
    assert_eq!(text(&path(&dir, "shop")), SHOP.replace("db = 2", "db = 5"));
    assert_eq!(text(&path(&dir, "home")), "[resources]\ndb = 5\n");
    take_back(written);
    assert_eq!(
        (text(&path(&dir, "shop")).as_str(), text(&path(&dir, "home")).as_str()),
        (SHOP, "[resources]\ndb = 2\n")
    );
    // The second of them cannot be written: the first is as it was.
    std::fs::create_dir(dir.path().join(format!("home/.mirab.toml.{}.new", std::process::id()))).unwrap();
    let Err(EditError::Config(why)) = files.write(&set("db", 5), &known) else { panic!("it was written") };
    assert!(why.contains("home/mirab.toml cannot be written") && why.ends_with("nothing was changed"), "{why}");
    assert_eq!(text(&path(&dir, "shop")), SHOP);
}

#[test]
fn a_new_file_that_is_taken_back_is_gone() {
    let (dir, files) = files();
    let (written, _) = files.write(&set("new", 5), &files.read().unwrap()).unwrap();
    assert_eq!(text(&path(&dir, "home")), "[resources]\nnew = 5\n");
    take_back(written);
    assert!(!path(&dir, "home").exists());
}

#[test]
fn a_file_counts_once_it_is_no_longer_being_written() {
    let (dir, files) = files();
    let mut looks = Looks::default();
    let mut look = || looks.is_news(&files.stamps());
    assert_eq!([look(), look(), look()], [false, true, true]);
    // An editor has emptied the file, and then writes it.
    put(&dir, "shop", "");
    assert!(!look());
    put(&dir, "shop", "[resources]\ndb = 30\n");
    assert_eq!([look(), look()], [false, true]);
    let done = files.stamps();
    looks.taken_over(done);
    assert!(!looks.is_news(&files.stamps()));
    // Nor is it lost that a file can be read again.
    use std::os::unix::fs::PermissionsExt;
    for mode in [0o000, 0o644] {
        std::fs::set_permissions(path(&dir, "shop"), std::fs::Permissions::from_mode(mode)).unwrap();
        looks.is_news(&files.stamps());
        assert!(looks.is_news(&files.stamps()), "{mode:o}");
        looks.taken_over(files.stamps());
    }
}
