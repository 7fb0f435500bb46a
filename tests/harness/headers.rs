//! A header map as Envoy keeps it: names in lower case, order kept, values of any bytes.

/// An ordered multimap of headers or trailers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Headers(Vec<(String, Vec<u8>)>);

impl Headers {
    /// The first value of `name`, as the ABI gives it.
    pub fn get(&self, name: &str) -> Option<&[u8]> {
        self.0.iter().find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_slice())
    }

    /// Appends a value.
    pub fn add(&mut self, name: &str, value: impl Into<Vec<u8>>) {
        self.0.push((name.to_ascii_lowercase(), value.into()));
    }

    /// Puts one value in the place of all others.
    pub fn set(&mut self, name: &str, value: impl Into<Vec<u8>>) {
        self.remove(name);
        self.add(name, value);
    }

    /// Removes every value of `name`.
    pub fn remove(&mut self, name: &str) {
        self.0.retain(|(key, _)| !key.eq_ignore_ascii_case(name));
    }

    /// How many headers there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Names and values in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_slice()))
    }

    /// Bytes of all names and values, which is what Envoy counts into `request.total_size`.
    pub fn byte_size(&self) -> usize {
        self.0.iter().map(|(name, value)| name.len() + value.len()).sum()
    }

    /// The ABI's form: count, sizes, then each name and value with a closing NUL.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = size(self.0.len()).to_vec();
        for (name, value) in &self.0 {
            bytes.extend(size(name.len()));
            bytes.extend(size(value.len()));
        }
        for (name, value) in &self.0 {
            bytes.extend(name.as_bytes());
            bytes.push(0);
            bytes.extend(value);
            bytes.push(0);
        }
        bytes
    }

    /// Reads the ABI's form; `None` where it is broken.
    pub fn decode(bytes: &[u8]) -> Option<Headers> {
        let count = read_size(bytes, 0)?;
        let mut at = 4 + count * 8;
        let mut take = |length: usize| {
            let piece = bytes.get(at..at + length)?.to_vec();
            at += length + 1;
            Some(piece)
        };
        let mut headers = Headers::default();
        for index in 0..count {
            let name = take(read_size(bytes, 4 + index * 8)?)?;
            let value = take(read_size(bytes, 8 + index * 8)?)?;
            headers.add(&String::from_utf8(name).ok()?, value);
        }
        Some(headers)
    }
}

fn size(length: usize) -> [u8; 4] {
    u32::try_from(length).expect("a header map under 4 GiB").to_le_bytes()
}

fn read_size(bytes: &[u8], at: usize) -> Option<usize> {
    let field = bytes.get(at..at + 4)?.try_into().ok()?;
    usize::try_from(u32::from_le_bytes(field)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_map_survives_the_abi() {
        let mut headers = Headers::default();
        headers.add("A", "1");
        headers.add("empty", "");
        headers.add("a", vec![0xff, 0x00]);
        assert_eq!(Headers::decode(&headers.encode()), Some(headers));
        assert_eq!(Headers::decode(&Headers::default().encode()), Some(Headers::default()));
        assert_eq!(Headers::decode(&[1, 0, 0, 0]), None);
    }
}
