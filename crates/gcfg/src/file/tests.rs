use proptest::prelude::*;

use super::*;

/// Section, name and value of every variable.
fn read(text: &str) -> Result<Vec<(String, String, Option<String>)>, String> {
    let entries = parse(text.as_bytes()).map_err(|error| error.to_string())?;
    Ok(entries
        .into_iter()
        .filter_map(|entry| Some((entry.section, entry.variable?)))
        .map(|(section, variable)| (section, variable.name, variable.value))
        .collect())
}

fn value(line: &str) -> Result<Option<String>, String> {
    let variables = read(&format!("[Global]\n{line}"))?;
    assert_eq!(variables.len(), 1, "{line}");
    Ok(variables.into_iter().next().unwrap().2)
}

#[test]
fn sections_and_variables_are_read_with_either_line_end() {
    let variable = |name: &str, value: &str| ("Global".to_owned(), name.to_owned(), Some(value.to_owned()));
    let text = "; head\n[ Global ] # side\n\n  api-url = http://h/client/api\n\tzone=z1";
    let expected = vec![variable("api-url", "http://h/client/api"), variable("zone", "z1")];
    assert_eq!(read(text), Ok(expected.clone()));
    assert_eq!(read(&text.replace('\n', "\r\n")), Ok(expected));
    assert_eq!(read(""), Ok(vec![]));
    assert_eq!(read("# only a comment"), Ok(vec![]));
}

#[test]
fn lines_are_numbered_and_sections_told_on_their_own() {
    let entries = parse(b"[Global]\n\nzone = a\n[Other \"x\\\"y\"]\n").unwrap();
    let told: Vec<_> = entries
        .iter()
        .map(|entry| (entry.line, entry.section.as_str(), entry.subsection.as_deref()))
        .collect();
    assert_eq!(
        told,
        [
            (1, "Global", None),
            (3, "Global", None),
            (4, "Other", Some("x\"y"))
        ]
    );
}

#[test]
fn values_are_read_as_the_go_parser_reads_them() {
    let table = [
        ("k = ab=cd==", "ab=cd=="),
        ("k =   a b  c  ", "a b  c"),
        ("k = ab;cd", "ab"),
        ("k = ab#cd", "ab"),
        ("k = ab ; cd", "ab"),
        (r#"k = "ab;cd""#, "ab;cd"),
        (r#"k = a "b # c" d"#, "a b # c d"),
        (r#"k = "  ab  " "#, "  ab  "),
        (r#"k = """#, ""),
        ("k =", ""),
        ("k = ; nothing", ""),
        (r#"k = "a\"b\\c\nd\te""#, "a\"b\\c\nd\te"),
        (r#"k = a\"b"#, "a\"b"),
        ("k = 'a'", "'a'"),
        ("k = ab\\\n  cd", "ab  cd"),
        ("k = ab\\\r\n  cd", "ab  cd"),
        ("k = [x]", "[x]"),
        ("k = Zürich", "Zürich"),
        ("k-2 = v", "v"),
    ];
    for (line, expected) in table {
        assert_eq!(value(line), Ok(Some(expected.to_owned())), "{line}");
    }
    for line in ["k", "k ; comment", "k\n"] {
        assert_eq!(value(line), Ok(None), "{line}");
    }
}

#[test]
fn each_broken_rule_is_told_with_its_place() {
    let table = [
        ("\u{feff}[Global]", "1:1: illegal character U+FEFF"),
        ("zone = a", "1:1: expected section header"),
        ("= a", "1:1: expected section header"),
        (
            "[Global]\n= a",
            "2:1: expected section header or variable declaration",
        ),
        (
            "[Global]\n]",
            "2:1: expected section header or variable declaration",
        ),
        ("[]", "1:2: expected section name"),
        ("[\"a\"]", "1:2: expected section name"),
        ("[2a]", "1:2: illegal character U+0032 '2'"),
        ("[-a]", "1:2: illegal character U+002D '-'"),
        ("[Global", "1:8: expected subsection name or right bracket"),
        ("[Global x]", "1:9: expected subsection name or right bracket"),
        ("[Global \"\"]", "1:9: empty subsection name"),
        ("[Global \"x\" y]", "1:13: expected right bracket"),
        ("[Global \"x]", "1:9: string not terminated"),
        ("[Global \"x\\n\"]", "1:12: unknown escape sequence"),
        ("[Global] zone = a", "1:10: expected EOL, EOF, or comment"),
        ("[Global]\nzone: a", "2:5: illegal character U+003A ':'"),
        ("[Global]\napi_url = a", "2:4: illegal character U+005F '_'"),
        ("[Global]\nzone a", "2:6: expected '='"),
        ("[Global]\n1zone = a", "2:1: illegal character U+0031 '1'"),
        ("[Global]\nk = \"a", "2:5: string not terminated"),
        ("[Global]\nk = \"a\nb\"", "2:5: string not terminated"),
        ("[Global]\nk = \"a\\x\"", "2:8: unknown escape sequence"),
        (
            "[Global]\nk = a\\b",
            "2:5: unquoted '\\' must be followed by new line or double quote",
        ),
        (
            "[Global]\nk = a\\\\b",
            "2:5: unquoted '\\' must be followed by new line or double quote",
        ),
        (
            "[Global]\nk = a\\",
            "2:5: unquoted '\\' must be followed by new line or double quote",
        ),
        ("[Global]\n# \0", "2:3: illegal character NUL"),
        ("[Global]\nk = a\0", "2:6: illegal character NUL"),
    ];
    for (text, expected) in table {
        assert_eq!(read(text), Err(expected.to_owned()), "{text:?}");
    }
    let error = parse(b"[Global]\nk = \xff\n").unwrap_err();
    assert_eq!(error.to_string(), "2:5: illegal UTF-8 encoding");
}

#[test]
fn neither_errors_nor_debug_output_show_values() {
    let error = read("[Global]\nsecret-key = \"hunter2\nzone = a").unwrap_err();
    assert!(!error.contains("hunter2"), "{error}");
    let entries = parse(b"[Global]\nsecret-key = hunter2").unwrap();
    assert!(!format!("{entries:?}").contains("hunter2"));
}

proptest! {
    #[test]
    fn no_bytes_make_the_parser_panic(bytes in proptest::collection::vec(any::<u8>(), 0..80)) {
        let _ = parse(&bytes);
    }

    #[test]
    fn no_text_of_its_own_letters_makes_it_panic(text in "[\\[\\]=\"\\\\;#a-c \\-\r\n\tü]{0,60}") {
        let _ = parse(text.as_bytes());
    }

    #[test]
    fn what_is_quoted_reads_back(text in "[^\0\r]{0,40}") {
        let quoted = text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n").replace('\t', "\\t");
        prop_assert_eq!(value(&format!("k = \"{quoted}\"")), Ok(Some(text)));
    }
}

#[test]
fn a_broken_rule_is_told_with_its_line_and_variable_and_with_nothing_else_of_the_file() {
    let known = |written: &str| match written {
        "zone" => Some("zone"),
        "api_key" => Some("api-key"),
        _ => None,
    };
    for (lines, expected) in [
        (
            "[Global]\n zone: a",
            "2:6: illegal character U+003A ':' (line 2, at `zone`): write `=` between a name and its value",
        ),
        (
            "[Global]\napi_key = hunter2",
            "2:4: illegal character U+005F '_' (line 2, at what may be meant for `api-key`): names have hyphens where other \
             files have underscores",
        ),
        ("[Global]\nhunter2 x", "2:9: expected '=' (line 2)"),
        (
            "\u{feff}[Global]",
            "1:1: illegal character U+FEFF (line 1): the file begins with a byte order mark: save it as UTF-8 without one",
        ),
        (
            "[Global]\nzone = \"hunter2",
            "2:8: string not terminated (line 2, at `zone`)",
        ),
        (
            "{\"zone\": \"hunter2\"}",
            "1:1: illegal character U+007B '{' (line 1, at `zone`): the file is not JSON: it has lines such as `name = value`",
        ),
        ("", "1:1: made up (line 1)"),
    ] {
        let error = parse(lines.as_bytes()).err().unwrap_or(SyntaxError {
            line: 1,
            column: 1,
            rule: "made up".to_owned(),
            letter: None,
        });
        assert_eq!(error.explained(lines.as_bytes(), known), expected);
    }
}
