//! Header maps as they cross the border: a count, the sizes of all names and values, then the bytes, each ended by NUL.

/// The pairs of a serialized map in order; ends early where the bytes do.
pub fn pairs(map: &[u8]) -> impl Iterator<Item = (&[u8], &[u8])> {
    let count = word(map, 0).unwrap_or(0);
    let mut at = count.saturating_mul(8).saturating_add(4);
    (0..count).map_while(move |n| {
        let sizes = n * 8 + 4;
        let name = bytes(map, &mut at, word(map, sizes)?)?;
        let value = bytes(map, &mut at, word(map, sizes + 4)?)?;
        Some((name, value))
    })
}

/// A map of these pairs.
pub fn serialize<'a>(pairs: impl Iterator<Item = (&'a str, &'a str)> + Clone) -> Vec<u8> {
    let mut map = size(pairs.clone().count()).to_vec();
    for (name, value) in pairs.clone() {
        map.extend(size(name.len()));
        map.extend(size(value.len()));
    }
    for (name, value) in pairs {
        for text in [name, value] {
            map.extend(text.as_bytes());
            map.push(0);
        }
    }
    map
}

fn word(map: &[u8], at: usize) -> Option<usize> {
    let bytes = map.get(at..at.checked_add(4)?)?;
    usize::try_from(u32::from_le_bytes(bytes.try_into().ok()?)).ok()
}

fn bytes<'a>(map: &'a [u8], at: &mut usize, len: usize) -> Option<&'a [u8]> {
    let text = map.get(*at..at.checked_add(len)?)?;
    *at += len + 1;
    Some(text)
}

fn size(len: usize) -> [u8; 4] {
    u32::try_from(len).unwrap_or(u32::MAX).to_le_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_map_comes_back_as_it_went() {
        let headers = [(":path", "/v1"), ("x-empty", ""), ("x-two", "a"), ("x-two", "b")];
        let map = serialize(headers.iter().copied());
        let back: Vec<_> = pairs(&map).collect();
        assert_eq!(back.len(), 4);
        for ((name, value), (n, v)) in headers.iter().zip(back) {
            assert_eq!((name.as_bytes(), value.as_bytes()), (n, v));
        }
    }

    #[test]
    fn a_broken_map_ends_early() {
        let map = serialize([("name", "value"), ("other", "thing")].into_iter());
        for end in 0..map.len() {
            assert!(pairs(&map[..end]).count() <= 2);
        }
        assert_eq!(pairs(&[255; 12]).count(), 0);
    }
}
