use serde::Deserialize;

use super::*;

#[derive(Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct File {
    #[serde(rename = "current-context")]
    current: Option<String>,
    users: Vec<User>,
    strict: bool,
    level: Option<u8>,
    kind: Option<Kind>,
}

#[derive(Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct User {
    name: String,
    token: Option<String>,
}

#[derive(Debug, PartialEq, Deserialize)]
enum Kind {
    One,
}

const KEYS: &[&str] = &[
    "current-context",
    "users",
    "name",
    "token",
    "strict",
    "level",
    "kind",
];

const SECRET: &str = "hunter2hunter2";

fn read(text: &str) -> Result<File, Malformed> {
    document(text.as_bytes(), KEYS)
}

#[test]
fn a_mistake_is_told_by_line_key_and_kind_and_never_by_contents() {
    let table: &[(&str, &str)] = &[
        (
            "users:\n- name: a\n  token: [SECRET]\n",
            "`token`: a text is expected (line 3)",
        ),
        (
            "users:\n- name: a\n  token: {SECRET: x}\n",
            "`token`: a text is expected (line 3)",
        ),
        ("users: SECRET\n", "`users`: a list is expected (line 1)"),
        (
            "users: {SECRET: SECRET}\n",
            "`users`: a list is expected (line 1)",
        ),
        (
            "users:\n- SECRET\n",
            "a mapping of keys to values is expected (line 2)",
        ),
        (
            "users:\n- {name: a, token: SECRET, token: SECRET}\n",
            "`token`: a key stands twice; keep one of the two (line 2)",
        ),
        ("users:\n- token: SECRET\n", "an entry has no `name` (line 2)"),
        ("SECRET\n", "a mapping of keys to values is expected (line 1)"),
        ("[SECRET]\n", "a mapping of keys to values is expected (line 1)"),
        ("SECRET: x\n", "a key is not known here (line 1)"),
        (
            "users:\n- name: a\n  SECRET: x\n",
            "a key is not known here (line 3)",
        ),
        (
            "curent-context: SECRET\n",
            "`current-context`: a key that is not known stands here, and looks like this one (line 1)",
        ),
        ("strict: SECRET\n", "`strict`: true or false is expected (line 1)"),
        ("level: SECRET\n", "`level`: a number is expected (line 1)"),
        (
            "kind: SECRET\n",
            "`kind`: not one of the words that are allowed (line 1)",
        ),
        (
            "users:\n- name: a\n\ttoken: SECRET\n",
            "a tab stands where YAML allows blanks only; indent with blanks (line 3)",
        ),
        (
            "current-context: \"SECRET\n",
            "not valid YAML: a quoted text does not end, or goes on after its end",
        ),
        ("current-context: 'SECRET' SECRET\n", "not valid YAML"),
        (
            "current-context: SECRET: SECRET\n",
            "not valid YAML: a colon stands where no key is expected",
        ),
        (
            "current-context: *SECRET\n",
            "an alias (`*`) names an anchor that is not there",
        ),
        ("users:\n- name: a\n token: SECRET\n", "not valid YAML"),
        (
            "current-context: a\n---\ncurrent-context: SECRET\n",
            "there is more than one document in the file",
        ),
        ("current-context: @SECRET\n", "not valid YAML"),
        ("current-context: %SECRET\n", "not valid YAML"),
        ("current-context: !SECRET SECRET\n", ""),
        ("current-context: !!int SECRET\n", ""),
        ("current-context: !!binary SECRET!\n", ""),
        ("{current-context: SECRET\n", "not valid YAML"),
        ("? [SECRET]\n: x\n", ""),
        ("<<: SECRET\n", ""),
        ("users: &SECRET [*SECRET]\n", ""),
        ("current-context: SECRET\0SECRET\n", ""),
    ];
    let mut faults = Vec::new();
    for (text, expected) in table {
        let text = text.replace("SECRET", SECRET);
        match read(&text) {
            Ok(file) if !expected.is_empty() => faults.push(format!("{text:?} was read: {file:?}")),
            Ok(_) => {}
            Err(error) => {
                let told = error.to_string();
                if !told.starts_with(expected) {
                    faults.push(format!("{text:?}\n  expected {expected}\n  got      {told}"));
                }
                let all = format!("{told} {error:?}");
                assert!(!all.contains(&SECRET[..6]), "{text}: {all}");
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn marks_of_encodings_are_understood() {
    let file = read("current-context: a\n").unwrap();
    let text = "\u{feff}current-context: a\n";
    assert_eq!(document::<File>(text.as_bytes(), KEYS).unwrap(), file);
    let units = || text.encode_utf16();
    let little: Vec<u8> = units().flat_map(u16::to_le_bytes).collect();
    let big: Vec<u8> = units().flat_map(u16::to_be_bytes).collect();
    assert_eq!(document::<File>(&little, KEYS).unwrap(), file);
    assert_eq!(document::<File>(&big, KEYS).unwrap(), file);
    for broken in [&b"\xff\xfea"[..], b"\xff\xfe\x00\xd8", b"\x80hunter2", b"a: \xff"] {
        let error = document::<File>(broken, KEYS).unwrap_err().to_string();
        assert_eq!(error, "the file is not a text in UTF-8");
    }
}

#[test]
fn documents_are_read_one_by_one_and_none_is_none() {
    let all: Vec<File> = documents(b"level: 1\n---\nlevel: 2\n", KEYS).unwrap();
    assert_eq!(
        all.iter().map(|file| file.level).collect::<Vec<_>>(),
        [Some(1), Some(2)]
    );
    assert!(documents::<File>(b"", KEYS).unwrap().is_empty());
    let error = documents::<File>(b"level: 1\n---\nlevel: hunter2\n", KEYS).unwrap_err();
    assert_eq!(error.to_string(), "`level`: a number is expected (line 3)");
}

proptest::proptest! {
    #[test]
    fn no_text_makes_an_error_repeat_it(text in "[a-c:\\-\\[\\]{}&*!|>'\"%@`#,? \n\t]{0,60}") {
        let text = format!("current-context: hunter2\n{text}\ntoken: hunter2\n");
        if let Err(error) = read(&text) {
            let told = format!("{error} {error:?}");
            assert!(!told.contains("hunter"), "{told}");
        }
    }
}
