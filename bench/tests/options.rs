//! The program's options, as `--help` lists them.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::process::Command;

fn help(arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_bench")).args(arguments).output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn every_suite_tells_its_options() {
    let suites = [
        "search",
        "lookup",
        "many-keys",
        "documents",
        "ranked",
        "hostile",
        "small-queries",
        "app",
        "sysbench",
        "replication",
        "tpcc",
        "tpcc-reads",
    ];
    let all = help(&["--help"]);
    for suite in suites {
        assert!(all.contains(&format!("\n  {suite} ")), "{suite} is missing in {all}");
        assert!(help(&[suite, "--help"]).contains("--help"));
    }
    let app = help(&["app", "--help"]);
    for option in [
        "--scale",
        "--seed",
        "--prepared",
        "--part",
        "--indexes",
        "--rounds",
        "--without-mysql",
        "--remora",
        "--json",
    ] {
        assert!(app.contains(option), "{option} is missing in {app}");
    }
    let ranked = help(&["ranked", "--help"]);
    for option in
        ["--rows", "--seed", "--kinds", "--clients", "--shards", "--without-sphinx", "--answers"]
    {
        assert!(ranked.contains(option), "{option} is missing in {ranked}");
    }
}
