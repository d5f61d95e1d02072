//! The committed OpenAPI document is the one of this version.
use std::path::Path;

#[test]
fn the_committed_document_is_up_to_date() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/openapi.json");
    let generated = mirab_server::openapi().to_pretty_json().unwrap() + "\n";
    if std::env::var_os("UPDATE_SPEC").is_some() {
        std::fs::write(&path, &generated).unwrap();
    }
    let committed = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        committed == generated,
        "{} is out of date: run the tests with UPDATE_SPEC=1 and commit it",
        path.display()
    );
}

#[test]
fn the_server_tells_its_document() {
    let (_world, server) = crate::harness::server("", &[]);
    let (status, kind, body) =
        crate::harness::raw("GET", &format!("{}/api/openapi.json", server.running.url()), &[], "");
    assert_eq!((status, kind.as_str()), (200, "application/json"));
    let served: serde_json::Value = serde_json::from_str(&body).unwrap();
    assert_eq!(served, serde_json::to_value(mirab_server::openapi()).unwrap());
    assert!(served["paths"]["/api/runs"]["post"]["requestBody"].is_object());
    assert!(served["paths"]["/api/openapi.json"]["get"].is_object());
    // A flow may return any JSON, and so may its defaults be.
    for (name, field) in [("Run", "result"), ("Complete", "result"), ("Param", "default")] {
        let schema = served["components"]["schemas"][name]["properties"][field].as_object().unwrap();
        assert!(schema.keys().all(|key| key == "description"), "{name}.{field}: {schema:?}");
    }
    assert!(served["components"]["schemas"]["Problem"]["properties"]["code"].is_object());
}
