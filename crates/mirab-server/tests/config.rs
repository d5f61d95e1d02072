//! `mirab.toml`, form by form and mistake by mistake.
use mirab_core::ResourceConfig;
use mirab_server::config::{ConfigFile, Declarations, Given, Role, ServerSettings};

fn parse(text: &str) -> ConfigFile {
    ConfigFile::parse("mirab.toml", text, Role::First).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

fn error(text: &str, role: Role) -> String {
    match ConfigFile::parse("mirab.toml", text, role) {
        Ok(file) => panic!("no error: {file:?}\n{text}"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn all_forms_of_the_product_page_are_read() {
    let file = parse(
        r#"
[server]
host = "127.0.0.1"        # beyond loopback a token is required
port = 4747
max_engines = 1
engines_per_cpu = 2
project = "shop"
[gate]
aging = "10m"
assumed_duration = "10s"
[resources]
db  = 4                                                   # short form of a semaphore
gpu = { kind = "semaphore", permits = 4 }
api = { kind = "token_bucket", rate = 50.0, burst = 100 }
"api:*"   = 1
"tag:gpu" = 1
eu_api = { kind = "token_bucket", rate = 25, burst = 50, shard = "eu" }
" a/b 🙂 " = 0
[resources.long]
kind = "semaphore"
permits = 7
[pools.llm]
slots = 16
"#,
    );
    assert_eq!(
        (file.host.as_deref(), file.port, file.project.as_deref()),
        (Some("127.0.0.1"), Some(4747), Some("shop"))
    );
    assert_eq!((file.max_engines.unwrap().0, file.engines_per_cpu), (1, Some(2)));
    assert_eq!((file.aging, file.assumed_duration), (Some(600_000_000_000), Some(10_000_000_000)));
    assert_eq!((file.pools[0].name.as_str(), file.pools[0].slots, file.pools[0].place.line), ("llm", Some(16), 22));
    let declared: Vec<ResourceConfig> = file.resources.iter().map(|resource| resource.config.clone()).collect();
    let wanted = [
        ResourceConfig::semaphore("db", 4),
        ResourceConfig::semaphore("gpu", 4),
        ResourceConfig::token_bucket("api", 50.0, 100).unwrap(),
        ResourceConfig::semaphore("api:*", 1),
        ResourceConfig::semaphore("tag:gpu", 1),
        ResourceConfig::token_bucket("eu_api", 25.0, 50).unwrap().in_shard("eu"),
        ResourceConfig::semaphore("a/b 🙂", 0),
        ResourceConfig::semaphore("long", 7),
    ];
    assert_eq!(declared, wanted);
    assert_eq!(file.resources[0].place.origin(), "mirab.toml:12");
}

#[test]
fn an_empty_file_says_nothing() {
    assert_eq!(parse(""), ConfigFile::default());
}

#[test]
fn case_e10_mistakes_are_named_with_their_place() {
    for (text, wanted) in [
        // Unknown keys.
        (
            "[sever]\nport = 1",
            "mirab.toml:1:2: unknown key \"sever\" in the file, expected one of server, gate, resources, pools; did you mean server?",
        ),
        ("[server]\nprot = 1", "mirab.toml:2:1: unknown key \"prot\" in [server]"),
        ("db = 1", "mirab.toml:1:1: unknown key \"db\" in the file"),
        ("[gate]\nage = \"1s\"", "mirab.toml:2:1: unknown key \"age\" in [gate]"),
        // Limits at the wrong level.
        ("[server]\ndb = 1", "mirab.toml:2:1: unknown key \"db\" in [server]"),
        (
            "[resources.api]\nkind = \"token_bucket\"\nrate = 1.0\nburst = 2\nmax_concurrent = 2",
            "mirab.toml:5:1: unknown key \"max_concurrent\" in resource \"api\"",
        ),
        (
            "[resources]\ndb = { kind = \"semaphore\", permits = 1, rate = 2 }",
            "mirab.toml:2:41: unknown key \"rate\" in resource \"db\"",
        ),
        ("[pools.llm]\nslot = 1", "mirab.toml:2:1: unknown key \"slot\" in [pools.llm]"),
        // Doubled names.
        ("[resources]\ndb = 1\ndb = 2", "mirab.toml:3:1: duplicate key"),
        (
            "[resources]\n\"db\" = 1\n\" db \" = 2",
            "mirab.toml:3:1: resource \"db\" is declared twice, first at mirab.toml:2:1",
        ),
        ("[resources]\n\"\u{e9}\" = 1\n\"e\u{301}\" = 1", "mirab.toml:3:1: resource \"\u{e9}\" is declared twice"),
        ("[server]\nport = 1\n[server]\nhost = \"a\"", "mirab.toml:3:"),
        // Wrong kinds.
        ("server = 1", "mirab.toml:1:1: server is the number 1, expected a table"),
        ("[server]\nport = \"x\"", "mirab.toml:2:1: port is the text \"x\", expected a whole number from 0 to 65535"),
        ("[server]\nport = 70000", "mirab.toml:2:1: port is 70000, expected a whole number from 0 to 65535"),
        ("[server]\nmax_engines = 0", "max_engines is 0, expected a whole number from 1"),
        ("[server]\nhost = 5", "host is the number 5, expected a text in quotes"),
        ("[server]\nproject = \"a/b\"", "mirab.toml:2:1: project is \"a/b\", expected 1 to 100 characters"),
        ("[gate]\naging = 10", "aging is the number 10, expected a text in quotes"),
        ("[gate]\naging = \"10\"", "aging is \"10\", expected a duration above zero such as \"10s\""),
        ("[gate]\naging = \"0s\"", "aging is \"0s\", expected a duration above zero"),
        ("[gate]\naging = \"-1s\"", "expected a duration"),
        (
            "[resources]\ndb = \"4\"",
            "mirab.toml:2:1: resource \"db\" is the text \"4\", expected a whole number of permits, or a table",
        ),
        ("[resources]\ndb = 1.5", "resource \"db\" is the number 1.5, expected a whole number"),
        ("[resources]\ndb = -1", "resource \"db\" has the number -1, expected permits of 0 or more"),
        ("[resources]\ndb = true", "resource \"db\" is true or false"),
        ("[resources]\ndb = []", "resource \"db\" is a list"),
        // Resources that make no sense.
        ("[resources]\ndb = { permits = 1 }", "mirab.toml:2:8: resource \"db\" lacks kind"),
        (
            "[resources]\ndb = { kind = \"mutex\" }",
            "mirab.toml:2:8: resource \"db\" has kind \"mutex\", expected \"semaphore\" or \"token_bucket\"",
        ),
        ("[resources]\ndb = { kind = \"semaphore\" }", "resource \"db\" lacks permits"),
        ("[resources]\na = { kind = \"token_bucket\", burst = 1 }", "resource \"a\" lacks rate"),
        ("[resources]\na = { kind = \"token_bucket\", rate = 1 }", "resource \"a\" lacks burst"),
        (
            "[resources]\na = { kind = \"token_bucket\", rate = 0, burst = 1 }",
            "mirab.toml:2:30: resource \"a\": the rate is 0, expected a number of units per second above 0",
        ),
        ("[resources]\na = { kind = \"token_bucket\", rate = -2.5, burst = 1 }", "the rate is -2.5"),
        ("[resources]\na = { kind = \"token_bucket\", rate = nan, burst = 1 }", "the rate is NaN"),
        ("[resources]\na = { kind = \"token_bucket\", rate = 1e308, burst = 1 }", "too many digits"),
        (
            "[resources]\na = { kind = \"token_bucket\", rate = 1, burst = 0 }",
            "burst is 0, expected a whole number, at least 1",
        ),
        ("[resources]\na = { kind = \"semaphore\", permits = 1, shard = \" \" }", "resource \"a\" has an empty shard"),
        ("[resources]\n\"\" = 1", "mirab.toml:2:1: resource \"\""),
        ("[resources]\n\"a\\nb\" = 1", "mirab.toml:2:1: resource"),
        ("[resources]\n\"a*b*\" = 1", "mirab.toml:2:1: resource \"a*b*\""),
        ("[resources]\n\"pool:x\" = 1", "mirab.toml:2:1: resource \"pool:x\""),
        ("[resources]\n\"flow:x\" = 1", "mirab.toml:2:1: resource \"flow:x\""),
        // Pools.
        (
            "[pools.default]\nslots = 1",
            "mirab.toml:1:8: pool \"default\" has as many slots as there are engines: set max_engines under [server] instead",
        ),
        ("[pools.llm]", "pool \"llm\" lacks slots"),
        ("[pools]\nllm = 4", "llm is the number 4, expected a table: write [pools.llm]"),
        // No TOML.
        ("[resources\ndb = 1", "mirab.toml:1:"),
        ("[resources]\ndb = = 1", "mirab.toml:2:"),
    ] {
        let error = error(text, Role::First);
        assert!(error.contains(wanted), "wanted {wanted}\n   got {error}");
    }
}

#[test]
fn names_that_are_too_long_are_refused() {
    let text = format!("[resources]\n\"{}\" = 1", "x".repeat(300));
    assert!(error(&text, Role::First).starts_with("mirab.toml:2:1: "));
}

#[test]
fn some_sections_are_for_the_first_directory_only() {
    for (text, role, wanted) in [
        (
            "[server]\nport = 1",
            Role::Further,
            "mirab.toml:2:1: [server] port is read from the first served directory only",
        ),
        (
            "[gate]\naging = \"1s\"",
            Role::Further,
            "mirab.toml:1:2: [gate] is read from the first served directory only",
        ),
        ("[pools.a]\nslots = 1", Role::Further, "[pools] is read from the first served directory only"),
        ("[server]\nproject = \"a\"", Role::Home, "[server] is read from the first served directory only"),
    ] {
        assert!(error(text, role).contains(wanted), "{wanted}");
    }
    // Its own name is a directory's own business.
    let file = ConfigFile::parse("mirab.toml", "[server]\nproject = \"b\"\n[resources]\nx = 1", Role::Further).unwrap();
    assert_eq!((file.project.as_deref(), file.resources.len()), (Some("b"), 1));
}

#[test]
fn two_files_may_agree_but_not_differ() {
    let file = |label: &str, text: &str| ConfigFile::parse(label, text, Role::First).unwrap();
    let mut declarations = Declarations::default();
    assert_eq!(declarations.add(&file("a/mirab.toml", "[resources]\ndb = 4\nx = 1")).unwrap().len(), 2);
    assert_eq!(declarations.add(&file("b/mirab.toml", "[resources]\nx = 1\ny = 1")).unwrap().len(), 1);
    let error = declarations.add(&file("home/mirab.toml", "[resources]\nz = 1\ndb = 5")).unwrap_err();
    assert_eq!(
        error.to_string(),
        "home/mirab.toml:3:1: resource \"db\" is a semaphore of 5 here, but a semaphore of 4 at a/mirab.toml:2:1: \
         give both the same value, or keep one of them"
    );
    // What was refused left nothing behind.
    assert_eq!(declarations.configs().len(), 3);
    assert_eq!(declarations.origin("x").as_deref(), Some("a/mirab.toml:3"));
    let other_kind = file("c/mirab.toml", "[resources]\ndb = { kind = \"semaphore\", permits = 4, shard = \"eu\" }");
    assert!(declarations.add(&other_kind).unwrap_err().to_string().contains("in shard \"eu\""));
}

#[test]
fn a_flag_outranks_the_environment_that_outranks_the_file() {
    let text = "[server]\nhost = \"file\"\nport = 3\nmax_engines = 3";
    let all = |name: &str| {
        let value = match name {
            "MIRAB_HOST" => "environment",
            _ => "2",
        };
        Some(value.to_owned())
    };
    let flags = Given { host: Some("flag".into()), port: Some(1), max_engines: Some(1) };
    let settle = |given: &Given, environment: &dyn Fn(&str) -> Option<String>, text| {
        let settings = ServerSettings::settle(given, environment, &parse(text), 4).unwrap();
        (settings.host, settings.port, settings.max_engines)
    };
    let none = |_: &str| None;
    assert_eq!(settle(&flags, &all, text), ("flag".into(), 1, 1));
    assert_eq!(settle(&Given::default(), &all, text), ("environment".into(), 2, 2));
    assert_eq!(settle(&Given::default(), &none, text), ("file".into(), 3, 3));
    assert_eq!(settle(&Given::default(), &none, ""), ("127.0.0.1".into(), 4747, 1));
    assert_eq!(settle(&Given::default(), &|_: &str| Some(String::new()), text), ("file".into(), 3, 3));
}

#[test]
fn settings_that_make_no_sense_are_refused() {
    let settle = |given: Given, name: &'static str, value: &'static str, text| {
        let environment = move |asked: &str| (asked == name).then(|| value.to_owned());
        ServerSettings::settle(&given, environment, &parse(text), 2).unwrap_err().to_string()
    };
    let max_engines = |count| Given { max_engines: Some(count), ..Given::default() };
    for (error, wanted) in [
        (settle(Given::default(), "MIRAB_PORT", "x", ""), "MIRAB_PORT is \"x\", expected a port from 0 to 65535"),
        (
            settle(Given::default(), "MIRAB_MAX_ENGINES", "9", ""),
            "MIRAB_MAX_ENGINES is 9, expected 1 to 2 on this machine",
        ),
        (settle(max_engines(0), "", "", ""), "--max-engines is 0, expected 1 to 2"),
        (
            settle(Given::default(), "", "", "[server]\nmax_engines = 3"),
            "mirab.toml:2:1: max_engines is 3, expected 1 to 2",
        ),
    ] {
        assert!(error.contains(wanted), "{error}");
    }
    let four = ServerSettings::settle(&max_engines(4), |_| None, &parse("[server]\nengines_per_cpu = 2"), 2).unwrap();
    assert_eq!((four.max_engines, four.max_engines_ceiling), (4, 4));
}
