//! The golden scripts of the parser: each request with the parsed command or its error.

mod support;

use remora_protocol::line::{ParseLimits, parse, reply};

#[test]
fn requests_parse_as_recorded() {
    for script in support::scripts("line") {
        let mut limits = ParseLimits::default();
        for setting in &script.settings {
            match setting.as_str() {
                "mygramdb" => limits = ParseLimits::mygramdb(),
                "mygramdb, no length limit" => {
                    limits = ParseLimits { max_query_bytes: 0, ..ParseLimits::mygramdb() };
                }
                other => panic!("{}: unknown setting {other}", script.path.display()),
            }
        }
        script.run(|request| {
            let mut answer = Vec::new();
            match parse(request, &limits) {
                Ok(command) => answer.extend_from_slice(support::print::print(&command).as_bytes()),
                Err(error) => reply::write_error(&mut answer, &error),
            }
            answer
        });
    }
}
