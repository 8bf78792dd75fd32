//! Reading request bodies in `application/vnd.kubernetes.protobuf`, in which `kubectl create` and the Go controller
//! managers write. Answers are always JSON, which those clients accept.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use crate::clock::{micros, seconds};
use crate::schema::{self, Fields, Presence, Shape};

/// What every such body begins with.
const MAGIC: &[u8] = b"k8s\0";

/// The object in `body` as JSON, or what is wrong with it.
pub(crate) fn decode(body: &[u8]) -> Result<Value, String> {
    let envelope = body
        .strip_prefix(MAGIC)
        .ok_or("provided data does not appear to be a protobuf message")?;
    let (mut api_version, mut kind, mut raw) = (String::new(), String::new(), &[][..]);
    for entry in entries(envelope) {
        match entry? {
            (1, Wire::Bytes(type_meta)) => {
                for entry in entries(type_meta) {
                    match entry? {
                        (1, Wire::Bytes(bytes)) => api_version = text(bytes),
                        (2, Wire::Bytes(bytes)) => kind = text(bytes),
                        _ => {}
                    }
                }
            }
            (2, Wire::Bytes(bytes)) => raw = bytes,
            _ => {}
        }
    }
    let shape = schema::root(&kind).ok_or_else(|| format!("protobuf is not read for kind {kind:?}"))?;
    let mut object = value(&Wire::Bytes(raw), shape)?.unwrap_or_default();
    object["apiVersion"] = api_version.into();
    object["kind"] = kind.into();
    Ok(object)
}

enum Wire<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

fn message(bytes: &[u8], message: &Fields) -> Result<Map<String, Value>, String> {
    let mut object = Map::new();
    for entry in entries(bytes) {
        let (number, wire) = entry?;
        let Some(field) = message.fields.iter().find(|field| field.number == number) else {
            continue;
        };
        let value = value(&wire, field.shape)?;
        match (field.presence, value) {
            (_, None) => {}
            (Presence::Many, Some(value)) => {
                if let Value::Array(items) = object.entry(field.name).or_insert_with(|| json!([])) {
                    items.push(value);
                }
            }
            (_, Some(Value::Object(part))) => {
                // Maps come entry by entry, and a message may come in pieces.
                if let Value::Object(whole) = object.entry(field.name).or_insert_with(|| json!({})) {
                    whole.extend(part);
                }
            }
            (Presence::Plain, Some(value))
                if value == json!("") || value == json!(0) || value == json!(false) => {}
            (_, Some(value)) => {
                object.insert(field.name.to_owned(), value);
            }
        }
    }
    Ok(object)
}

fn value(wire: &Wire<'_>, shape: Shape) -> Result<Option<Value>, String> {
    let value = match (shape, wire) {
        // Negative numbers are sent as the same 64 bits.
        (Shape::Int | Shape::Long, Wire::Number(number)) => json!(number.cast_signed()),
        (Shape::Bool, Wire::Number(number)) => json!(*number != 0),
        (Shape::Text, Wire::Bytes(bytes)) => text(bytes).into(),
        (Shape::Message(fields), Wire::Bytes(bytes)) => Value::Object(message(bytes, fields)?),
        (Shape::Time | Shape::MicroTime, Wire::Bytes(bytes)) => {
            let (since, nanos) = (number_in(bytes, 1)?, number_in(bytes, 2)?);
            if (since, nanos) == (0, 0) {
                return Ok(None);
            }
            let time = i32::try_from(nanos)
                .ok()
                .and_then(|nanos| Timestamp::new(since, nanos).ok());
            let time = time.ok_or("time out of range")?;
            if matches!(shape, Shape::Time) {
                seconds(time)
            } else {
                micros(time)
            }
            .into()
        }
        (Shape::IntOrText, Wire::Bytes(bytes)) => match number_in(bytes, 1)? {
            0 => number_in(bytes, 2)?.into(),
            _ => text(bytes_in(bytes, 3)?).into(),
        },
        (Shape::TextMap | Shape::BytesMap | Shape::QuantityMap, Wire::Bytes(bytes)) => {
            let held = bytes_in(bytes, 2)?;
            let held = match shape {
                Shape::BytesMap => STANDARD.encode(held),
                Shape::QuantityMap => text(bytes_in(held, 1)?),
                _ => text(held),
            };
            json!({text(bytes_in(bytes, 1)?): held})
        }
        _ => return Err("wrong wire type".to_owned()),
    };
    Ok(Some(value))
}

/// The number in one field of a small message; 0 if it is not there.
fn number_in(bytes: &[u8], wanted: u64) -> Result<i64, String> {
    for entry in entries(bytes) {
        if let (number, Wire::Number(value)) = entry?
            && number == wanted
        {
            return Ok(value.cast_signed());
        }
    }
    Ok(0)
}

/// The bytes in one field of a small message; empty if it is not there.
fn bytes_in(bytes: &[u8], wanted: u64) -> Result<&[u8], String> {
    for entry in entries(bytes) {
        if let (number, Wire::Bytes(value)) = entry?
            && number == wanted
        {
            return Ok(value);
        }
    }
    Ok(&[])
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The fields of a message, in the order sent.
fn entries(mut bytes: &[u8]) -> impl Iterator<Item = Result<(u64, Wire<'_>), String>> {
    std::iter::from_fn(move || {
        if bytes.is_empty() {
            return None;
        }
        let entry = entry(&mut bytes);
        if entry.is_none() {
            // What cannot be read ends the message.
            bytes = &[];
        }
        Some(entry.ok_or_else(|| "unexpected end of protobuf message".to_owned()))
    })
}

fn entry<'a>(bytes: &mut &'a [u8]) -> Option<(u64, Wire<'a>)> {
    let tag = varint(bytes)?;
    let wire = match tag & 7 {
        0 => Wire::Number(varint(bytes)?),
        1 => Wire::Bytes(take(bytes, 8)?),
        2 => {
            let length = usize::try_from(varint(bytes)?).ok()?;
            Wire::Bytes(take(bytes, length)?)
        }
        5 => Wire::Bytes(take(bytes, 4)?),
        _ => return None,
    };
    Some((tag >> 3, wire))
}

fn take<'a>(bytes: &mut &'a [u8], length: usize) -> Option<&'a [u8]> {
    let (taken, rest) = bytes.split_at_checked(length)?;
    *bytes = rest;
    Some(taken)
}

fn varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let (first, rest) = bytes.split_first()?;
        *bytes = rest;
        value |= u64::from(first & 0x7f) << shift;
        if first & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn field(number: u8, bytes: &[u8]) -> Vec<u8> {
        [&[number << 3 | 2, u8::try_from(bytes.len()).unwrap()], bytes].concat()
    }

    fn body(kind: &str, raw: &[u8]) -> Vec<u8> {
        let type_meta = [field(1, b"v1"), field(2, kind.as_bytes())].concat();
        [
            MAGIC,
            &field(1, &type_meta),
            &field(2, raw),
            &field(3, b""),
            &field(4, b""),
        ]
        .concat()
    }

    #[test]
    fn objects_are_read_by_their_field_numbers() {
        let label = field(11, &[field(1, b"role"), field(2, b"")].concat());
        let time = field(8, &[0x08, 0x01]);
        let meta = [field(1, b"web"), field(2, b""), label, time].concat();
        let target = [0x08, 0x01, 0x10, 0x00]
            .iter()
            .copied()
            .chain(field(3, b"http"))
            .collect::<Vec<u8>>();
        let port = [
            field(1, b""),
            vec![0x18, 0x50],
            field(4, &target),
            vec![0x28, 0x00],
        ]
        .concat();
        let spec = [field(1, &port), vec![0xa0, 0x01, 0x00]].concat();
        let raw = [field(1, &meta), field(2, &spec)].concat();
        assert_eq!(
            decode(&body("Service", &raw)).unwrap(),
            json!({
                "apiVersion": "v1", "kind": "Service",
                "metadata": {"name": "web", "labels": {"role": ""}, "creationTimestamp": "1970-01-01T00:00:01Z"},
                "spec": {"ports": [{"port": 80, "targetPort": "http"}], "allocateLoadBalancerNodePorts": false},
            })
        );
    }

    #[test]
    fn damaged_bodies_are_refused() {
        let whole = body("Node", &field(1, &field(1, b"a")));
        assert!(decode(&whole).is_ok());
        // At 16 bytes the cut falls between two fields, which is a whole message.
        for length in (0..16).chain(17..whole.len() - 4) {
            assert!(decode(&whole[..length]).is_err(), "{length}");
        }
        assert!(decode(&body("Widget", b"")).is_err());
    }
}
