//! Pieces of CEL, the language of admission policies.

/// A text as a literal.
pub(crate) fn text(text: &str) -> String {
    let mut literal = String::from("'");
    for character in text.chars() {
        match character {
            '\'' | '\\' => {
                literal.push('\\');
                literal.push(character);
            }
            '\n' => literal.push_str("\\n"),
            _ => literal.push(character),
        }
    }
    literal.push('\'');
    literal
}

/// Texts as a literal.
pub(crate) fn list<'a>(texts: impl IntoIterator<Item = &'a str>) -> String {
    let items: Vec<String> = texts.into_iter().map(text).collect();
    format!("[{}]", items.join(", "))
}

/// Whether a whole expression fits a regular expression, which holds no `'`.
pub(crate) fn matches(value: &str, expression: &str) -> String {
    debug_assert!(!expression.contains('\''));
    format!("{value}.matches(r'^{expression}$')")
}

/// Whether a text can be repeated in a message: of moderate length, and without control characters, for which the API server
/// drops a warning.
pub(crate) fn is_sayable(value: &str) -> String {
    matches(value, r"\P{Cc}{0,250}")
}

/// A text in a message.
pub(crate) fn quoted(value: &str) -> String {
    format!("({value} == '' ? 'not set' : '`' + {value} + '`')")
}

/// Blanks, as JSON and label selectors know them.
const BLANKS: &str = r"[ \t\r\n]*";
/// A JSON text.
const JSON_TEXT: &str = r#""([^"\\\x00-\x1f]|\\.)*""#;

/// A JSON value that is no list and no object.
fn json_scalar() -> String {
    format!(r"({JSON_TEXT}|-?[0-9]+(\.[0-9]+)?([eE][-+]?[0-9]+)?|true|false|null)")
}

fn json_list(item: &str) -> String {
    format!(r"\[{BLANKS}({item}{BLANKS}(,{BLANKS}{item}{BLANKS})*)?\]")
}

fn json_object(value: &str) -> String {
    let pair = format!("{JSON_TEXT}{BLANKS}:{BLANKS}{value}{BLANKS}");
    format!(r"\{{{BLANKS}({pair}(,{BLANKS}{pair})*)?\}}")
}

/// A list of texts; blank and `null` are the empty list.
pub(crate) fn is_list_of_texts(value: &str) -> String {
    let form = format!("{BLANKS}(null|{}){BLANKS}", json_list(JSON_TEXT));
    format!("({value}.trim() == '' || {})", matches(value, &form))
}

/// The texts of a list, without their quotes. One with an escape cannot be read here.
pub(crate) fn texts_of_list(value: &str) -> String {
    format!(
        r#"{value}.findAll(r'"([^"\\]|\\.)*"').map(i, i.substring(1, size(i) - 1)).filter(i, !i.contains('\\'))"#
    )
}

/// A list of objects of scalars and lists of them, or `null`.
pub(crate) fn is_list_of_objects(value: &str) -> String {
    let form = format!("{BLANKS}(null|{}){BLANKS}", json_list(&flat_object()));
    matches(value, &form)
}

/// An object of scalars and lists of them.
pub(crate) fn is_object(value: &str) -> String {
    matches(value, &format!("{BLANKS}{}{BLANKS}", flat_object()))
}

fn flat_object() -> String {
    let scalar = json_scalar();
    json_object(&format!("({scalar}|{})", json_list(&scalar)))
}

/// Whether there is an object in an object, or something in a list of one: too deep to be looked at.
pub(crate) fn is_deep(value: &str) -> String {
    format!(r"{value}.matches(r'\{{[^{{}}]*(\{{|\[[^\]{{}}]*[\[{{])')")
}

/// Whether fields of objects are texts or `null` wherever they stand, in any letter case.
pub(crate) fn fields_are_texts(value: &str, names: &[&str]) -> String {
    let names = names.join("|");
    format!(r#"!{value}.matches(r'(?i)"({names})"{BLANKS}:{BLANKS}[^"n \t\r\n]')"#)
}

/// Whether a field of objects is a list that begins with a text, or `null`.
pub(crate) fn field_is_list(value: &str, name: &str) -> String {
    format!(r#"!{value}.matches(r'(?i)"{name}"{BLANKS}:{BLANKS}([^\[n \t\r\n]|\[{BLANKS}[^"\] \t\r\n])')"#)
}

/// The texts of a field of objects.
pub(crate) fn texts_of_field(value: &str, name: &str) -> String {
    format!(
        r#"{value}.findAll(r'(?i)"{name}"{BLANKS}:{BLANKS}"[^"\\]*"').map(i, i.substring(0, size(i) - 1)).map(i, i.substring(i.lastIndexOf('"') + 1))"#
    )
}

/// Whether all names of fields are among these, in any letter case. One with an escape cannot be read here.
pub(crate) fn fields_are_known(value: &str, names: &[&str]) -> String {
    format!(
        r#"{value}.findAll(r'"([^"\\]|\\.)*"({BLANKS}:)?').filter(t, t.endsWith(':')).map(t, t.substring(1, t.lastIndexOf('"')).lowerAscii()).all(t, t.contains('\\') || t in {})"#,
        list(names.iter().copied())
    )
}

/// Whether a field of objects fits a regular expression wherever it is a text that is not blank.
pub(crate) fn field_matches(value: &str, name: &str, expression: &str) -> String {
    format!(
        "{}.map(t, t.trim()).all(t, t == '' || {})",
        texts_of_field(value, name),
        matches("t", expression)
    )
}

/// Whether each list of HTTP status codes in a field is one that the API takes: one range alone, or codes.
pub(crate) fn fields_are_codes(value: &str, name: &str) -> String {
    let lists = format!(r#"{value}.findAll(r'(?i)"{name}"{BLANKS}:{BLANKS}\[[^\[\]]*\]')"#);
    let codes = texts_of_list("l.substring(l.indexOf('['))");
    let code = "[ ]*[1-9][0-9]{2}[ ]*";
    format!(
        "{lists}.all(l, {codes}.all(c, {}) || size({codes}) == 1 && {codes}.all(c, {}))",
        matches("c", code),
        matches("c", &format!("{code}-{code}"))
    )
}

/// Whether a text is a network of several addresses.
pub(crate) fn is_wide(value: &str) -> String {
    format!(
        "isCIDR({value}) && cidr({value}).prefixLength() != (cidr({value}).ip().family() == 4 ? 32 : 128)"
    )
}

/// Whether two lists of objects have the same subnets and addresses, in any spelling of an address.
pub(crate) fn are_same_vips(one: &str, other: &str) -> String {
    let addresses = |value| texts_of_field(value, "address");
    let subnets = |value| format!("{}.map(s, s.lowerAscii())", texts_of_field(value, "subnet"));
    let are_addresses = |value| format!("{}.all(a, isIP(a))", addresses(value));
    let parsed = |value| format!("{}.map(a, string(ip(a)))", addresses(value));
    format!(
        "{one}.split('{{').size() == {other}.split('{{').size()\n&& {} == {}\n&& {} && {} && {} == {}",
        subnets(one),
        subnets(other),
        are_addresses(one),
        are_addresses(other),
        parsed(one),
        parsed(other)
    )
}

/// Addresses that the readers take and the API server's functions do not: IPv4 within IPv6.
const MAPPED: &str = r"^[0:]*:[fF]{4}:";

/// Whether a text is an IP address.
pub(crate) fn is_address(value: &str) -> String {
    format!("(isIP({value}) || {value}.matches(r'{MAPPED}'))")
}

/// Whether a text is a network in CIDR notation. Spellings with zeros in front are let through, because some readers take
/// them.
pub(crate) fn is_network(value: &str) -> String {
    format!(
        r"(isCIDR({value}) || {value}.matches(r'^[0-9A-Fa-f:.]+/[0-9]{{1,3}}$') && {value}.matches(r'(^|[./])0[0-9]|:.*\.|{MAPPED}'))"
    )
}

/// A UUID with hyphens, as 32 digits, in braces, or behind `urn:uuid:`.
pub(crate) fn is_uuid(value: &str) -> String {
    let long = "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}";
    format!("{value}.matches(r'(?i)^((urn:uuid:)?{long}|[0-9a-f]{{32}}|\\{{{long}\\}})$')")
}

/// A DNS name that is no address, as the API server wants it in a status.
pub(crate) fn is_hostname(value: &str) -> String {
    let label = "[a-z0-9]([-a-z0-9]*[a-z0-9])?";
    let name = matches(value, &format!(r"{label}(\.{label})*"));
    format!("size({value}) <= 253 && {name} && !isIP({value})")
}

/// The name of a label, and the value of one that is not empty.
const LABEL: &str = "[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?";
/// What may stand in front of a label's name.
const LABEL_PREFIX: &str = "([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?";

/// Labels, each as `key=value`, `key=` or `key`.
pub(crate) fn is_labels(value: &str) -> String {
    let item = format!("{BLANKS}({LABEL_PREFIX}{LABEL}(=({LABEL})?)?)?{BLANKS}");
    matches(value, &format!("{item}(,{item})*"))
}

/// A label selector of Kubernetes.
pub(crate) fn is_selector(value: &str) -> String {
    let key = format!("{LABEL_PREFIX}{LABEL}");
    let word = format!("({LABEL})?");
    let words = format!(r"\({BLANKS}{word}{BLANKS}(,{BLANKS}{word}{BLANKS})*\)");
    let test = format!(
        "({BLANKS}(=|==|!=){BLANKS}{word}|[ \\t\\r\\n]+(in|notin){BLANKS}{words}|{BLANKS}[<>]{BLANKS}[0-9]+)"
    );
    let requirement = format!("(!{BLANKS}{key}|{key}{test}?)");
    let form = format!("{BLANKS}({requirement}({BLANKS},{BLANKS}{requirement})*)?{BLANKS}");
    matches(value, &form)
}

/// Whether two texts are the same but for case and hyphens, one begins with the other, or one letter is missing, too much, another
/// one, or has changed places with the next. `start` characters are the same in both.
pub(crate) fn is_near(one: &str, other: &str, start: usize, end: usize) -> String {
    let positions: Vec<String> = (start..=end).map(|position| position.to_string()).collect();
    let positions = positions.join(", ");
    let bare = |text: &str| format!("{text}.lowerAscii().replace('-', '').replace('_', '')");
    let (bare_one, bare_other) = (bare(one), bare(other));
    format!(
        "({one}.startsWith({other}) && size({other}) > {start} || {other}.startsWith({one}) || {bare_one} == {bare_other} || \
         size({one}) - size({other}) in [-1, 0, 1] && [{positions}].exists(p, \
         p < size({one}) && p < size({other}) && {one}.substring(0, p) == {other}.substring(0, p) && (\
         {one}.substring(p + 1) == {other}.substring(p) || {one}.substring(p) == {other}.substring(p + 1) || \
         {one}.substring(p + 1) == {other}.substring(p + 1) || \
         p + 1 < size({one}) && p + 1 < size({other}) && {one}.substring(p + 2) == {other}.substring(p + 2) && \
         {one}.charAt(p) == {other}.charAt(p + 1) && {one}.charAt(p + 1) == {other}.charAt(p))))"
    )
}

/// Whether the other key has the word in it and the name of the one behind another domain.
pub(crate) fn is_namesake(one: &str, other: &str, word: &str) -> String {
    let word = text(word);
    format!("{other}.contains({word}) && {other}.endsWith({one}.substring({one}.indexOf('/')))")
}

/// The name of a key behind its domain.
fn name_of(key: &str) -> String {
    format!("{key}.substring({key}.indexOf('/') + 1)")
}

/// Whether the one key ends with the name of the other: its beginning was left out.
pub(crate) fn is_tail(one: &str, other: &str) -> String {
    format!("{one}.endsWith('-' + {})", name_of(other))
}

/// Whether the two names share their last word, or one stands within the other.
pub(crate) fn is_akin(one: &str, other: &str) -> String {
    let (name, other_name) = (name_of(one), name_of(other));
    format!(
        "({one}.contains('-' + {other_name} + '-') || {other}.endsWith('-' + {name}) || \
         {other_name}.contains('-') && {one}.endsWith({other}.substring({other}.lastIndexOf('-'))))"
    )
}

/// Whether the length of one text differs less from a third one's than that of another; of equal ones, which is first by the alphabet.
pub(crate) fn is_nearer(one: &str, other: &str, third: &str) -> String {
    let distance = |text: &str| {
        format!(
            "(size({text}) > size({third}) ? size({text}) - size({third}) : size({third}) - size({text}))"
        )
    };
    let (one_is, other_is) = (distance(one), distance(other));
    format!("{one_is} < {other_is} || {one_is} == {other_is} && {one} < {other}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_literal_holds_quotes_and_escapes() {
        assert_eq!(text(r"it's \d"), r"'it\'s \\d'");
        assert_eq!(list(["a", "b"]), "['a', 'b']");
    }
}
