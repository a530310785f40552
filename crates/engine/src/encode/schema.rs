//! The encoding of table definitions in the row store and in dumps.
//!
//! ```text
//! schema := JSON { "version": 1 | 2 | 3 | 4 | 5, "schema": the fields of `Schema` by name }
//! ```
//! Version 2 has unique paths. Version 3 has texts of paths, or several paths indexed together; a
//! program that does not know these must not write to such a table. Version 4 has agents; an older
//! program would treat the table as empty. Version 5 has several paths that are unique together. Version 6
//! has prefixes in indexes; an older program would take a prefix for the whole value.

use serde::{Deserialize, Serialize};

use crate::{Error, Result, Schema};

const VERSION: u32 = 1;
const VERSION_OF_UNIQUE_PATHS: u32 = 2;
const VERSION_OF_JOINT_PATHS: u32 = 3;
const VERSION_OF_AGENTS: u32 = 4;
const VERSION_OF_UNIQUE_TOGETHER: u32 = 5;
const VERSION_OF_PREFIXES: u32 = 6;

#[derive(Serialize)]
struct Stored<'a> {
    version: u32,
    schema: &'a Schema,
}

#[derive(Deserialize)]
struct Version {
    version: u32,
}

#[derive(Deserialize)]
struct Loaded {
    schema: Schema,
}

/// Encodes a definition, which must be valid.
pub(crate) fn encode_schema(schema: &Schema) -> Result<Vec<u8>> {
    // This also limits the depth that the recursive encoder meets.
    schema.validate()?;
    let versions = schema.paths.iter().map(|path| match (path.is_plain(), path.unique) {
        (true, false) => VERSION,
        (true, true) => VERSION_OF_UNIQUE_PATHS,
        (false, false) => VERSION_OF_JOINT_PATHS,
        (false, true) => VERSION_OF_UNIQUE_TOGETHER,
    });
    let of_agents = if schema.agents().is_empty() { VERSION } else { VERSION_OF_AGENTS };
    let mut parts = schema.indexes.iter().flat_map(|index| &index.columns);
    let has_prefixes = parts.any(|part| part.prefix.is_some());
    let of_prefixes = if has_prefixes { VERSION_OF_PREFIXES } else { VERSION };
    let version = versions.max().unwrap_or(VERSION).max(of_agents).max(of_prefixes);
    let stored = Stored { version, schema };
    serde_json::to_vec(&stored).map_err(|error| corrupt(&error.to_string()))
}

/// Decodes a definition and validates it.
pub(crate) fn decode_schema(bytes: &[u8]) -> Result<Schema> {
    let parsed = serde_json::from_slice::<Version>(bytes);
    let version = parsed.map_err(|error| corrupt(&error.to_string()))?.version;
    if !(VERSION..=VERSION_OF_PREFIXES).contains(&version) {
        let message = format!(
            "it has version {version}, this program reads up to {VERSION_OF_PREFIXES}: use a newer program"
        );
        return Err(corrupt(&message));
    }
    let loaded = serde_json::from_slice::<Loaded>(bytes);
    let schema = loaded.map_err(|error| corrupt(&error.to_string()))?.schema;
    schema.validate().map_err(|error| corrupt(&error.to_string()))?;
    Ok(schema)
}

fn corrupt(what: &str) -> Error {
    Error::Corrupt(format!("a table definition: {what}"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{
        Comparison, Filter, Literal, Normalization, PathDef, TextDef, Width,
        encode::strategies::{any_kind, any_value, table},
    };

    fn any_filter() -> BoxedStrategy<Filter> {
        let literal = prop_oneof![
            ".{0,6}".prop_map(Literal::Text),
            any_kind().prop_flat_map(any_value).prop_map(Literal::Value),
        ];
        let column = || Just("c1".to_owned());
        let comparison = prop::sample::select(vec![
            Comparison::Equal,
            Comparison::NotEqual,
            Comparison::Greater,
            Comparison::GreaterOrEqual,
            Comparison::Less,
            Comparison::LessOrEqual,
        ]);
        let leaf = prop_oneof![
            (column(), comparison, literal.clone()).prop_map(|(column, comparison, literal)| {
                Filter::Compare { column, comparison, literal }
            }),
            (column(), prop::collection::vec(literal.clone(), 0..4))
                .prop_map(|(column, literals)| Filter::In(column, literals)),
            (column(), literal.clone(), literal)
                .prop_map(|(column, low, high)| Filter::Between(column, low, high)),
            column().prop_map(Filter::IsNull),
            column().prop_map(Filter::IsNotNull),
        ];
        let nested = leaf.prop_recursive(5, 20, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Filter::And),
                prop::collection::vec(inner.clone(), 0..4).prop_map(Filter::Or),
                inner.prop_map(|filter| Filter::Not(Box::new(filter))),
            ]
        });
        nested.boxed()
    }

    fn any_schema() -> BoxedStrategy<Schema> {
        let kinds = prop::collection::vec(any_kind(), 0..12);
        let width = prop::sample::select(vec![Width::Keep, Width::Narrow, Width::Wide]);
        let words = prop::collection::vec(prop::collection::vec(".{1,4}", 1..3), 0..3);
        (kinds, width, any::<[bool; 3]>(), prop::option::of(any_filter()), words)
            .prop_map(|(mut kinds, width, flags, required, synonyms)| {
                kinds.splice(0..0, [crate::ColumnType::Int(64), crate::ColumnType::Text]);
                let mut schema = table(&kinds);
                schema.primary_key = vec![0];
                schema.columns[0].nullable = false;
                let [nfkc, fold_case, fold_accents] = flags;
                let normalization = Normalization { nfkc, width, fold_case, fold_accents };
                let delimiter = fold_case.then(|| "\n".to_owned());
                schema.texts.push(TextDef { id: 3, columns: vec![1], delimiter, normalization });
                if fold_accents {
                    schema.columns[1].declared = Some("text COMMENT 'x'".to_owned());
                    schema.declared = Some(crate::DeclaredTable::default());
                }
                Schema { required, synonyms, ..schema }
            })
            .boxed()
    }

    proptest! {
        #[test]
        fn definitions_round_trip(schema in any_schema()) {
            let stored = encode_schema(&schema).unwrap();
            prop_assert_eq!(decode_schema(&stored).unwrap(), schema);
        }
    }

    #[test]
    fn other_versions_and_invalid_definitions_are_refused() {
        let mut schema = table(&[crate::ColumnType::Int(64)]);
        assert!(encode_schema(&schema).is_err());
        schema.columns[0].nullable = false;
        let stored = String::from_utf8(encode_schema(&schema).unwrap()).unwrap();
        let other = stored.replace("\"version\":1", "\"version\":7");
        let error = decode_schema(other.as_bytes()).unwrap_err().to_string();
        assert!(error.contains("version 7"), "{error}");
        let invalid = stored.replace("\"primary_key\":[0]", "\"primary_key\":[7]");
        assert!(decode_schema(invalid.as_bytes()).is_err());
        assert!(decode_schema(b"").is_err());
        assert!(decode_schema("[".repeat(100_000).as_bytes()).is_err());
    }

    #[test]
    fn tables_with_agents_have_a_version_of_their_own() {
        let settings = vec![("agent_query_timeout".to_owned(), "1".to_owned())];
        let plain = Schema::distributed("d", vec!["t".to_owned()]);
        let agents = plain.clone().with_agents(vec!["h:1:d.t".to_owned()], settings);
        for (schema, version) in [(plain, 1), (agents, 4)] {
            let stored = encode_schema(&schema).unwrap();
            assert!(stored.starts_with(format!("{{\"version\":{version},").as_bytes()));
            assert_eq!(decode_schema(&stored).unwrap(), schema);
        }
    }

    #[test]
    fn unique_and_joint_paths_have_versions_of_their_own() {
        let mut schema = table(&[crate::ColumnType::Int(64), crate::ColumnType::Json]);
        schema.columns[0].nullable = false;
        schema.primary_key = vec![0];
        let plain = PathDef::new(1, vec!["a".to_owned()]);
        schema.paths = vec![PathDef { kept: true, ..plain.clone() }];
        for (unique, version) in [(false, 1), (true, 2)] {
            schema.paths[0].unique = unique;
            let stored = encode_schema(&schema).unwrap();
            assert!(stored.starts_with(format!("{{\"version\":{version},").as_bytes()));
            assert_eq!(decode_schema(&stored).unwrap(), schema);
        }
        schema.paths =
            PathDef::of_texts(1, vec![plain.names.clone(), Vec::new()]).into_iter().collect();
        let stored = encode_schema(&schema).unwrap();
        assert!(stored.starts_with(b"{\"version\":3,"));
        assert_eq!(decode_schema(&stored).unwrap(), schema);
        for (unique, version) in [(false, 3), (true, 5)] {
            let together = PathDef::together(1, vec![plain.names.clone(), Vec::new()]).unwrap();
            schema.paths = vec![PathDef { unique, ..together }];
            let stored = encode_schema(&schema).unwrap();
            assert!(stored.starts_with(format!("{{\"version\":{version},").as_bytes()));
            assert_eq!(decode_schema(&stored).unwrap(), schema);
        }
        schema.paths = vec![plain];
        let stored = String::from_utf8(encode_schema(&schema).unwrap()).unwrap();
        assert!(stored.contains(r#""paths":[{"column":1,"names":["a"]}]"#), "{stored}");
    }

    #[test]
    fn stored_format_is_unchanged() {
        let mut schema = table(&[crate::ColumnType::Decimal(5, 2)]);
        schema.columns[0].nullable = false;
        let stored = String::from_utf8(encode_schema(&schema).unwrap()).unwrap();
        let expected = concat!(
            r#"{"version":1,"schema":{"name":"t","columns":[{"id":0,"name":"c0","#,
            r#""kind":{"decimal":[5,2]},"nullable":false,"indexed":true}],"primary_key":[0],"#,
            r#""texts":[],"required":null,"synonyms":[]}}"#,
        );
        assert_eq!(stored, expected);
    }
}
