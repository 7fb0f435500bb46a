//! The model servers whose ways of reading a body are known.

use super::Amount;

/// The model server behind the filter; it decides how a body's fields are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backend {
    /// vLLM's OpenAI-compatible server.
    Vllm,
    /// SGLang, its native endpoint included.
    Sglang,
    /// Hugging Face's Text Generation Inference.
    Tgi,
    /// llama.cpp's server.
    LlamaCpp,
    /// Ollama.
    Ollama,
    /// OpenAI itself, or what is as strict.
    OpenAi,
}

/// Every backend by the name that policies know it by.
pub const BACKENDS: [(&str, Backend); 6] = [
    ("vllm", Backend::Vllm),
    ("sglang", Backend::Sglang),
    ("tgi", Backend::Tgi),
    ("llamacpp", Backend::LlamaCpp),
    ("ollama", Backend::Ollama),
    ("openai", Backend::OpenAi),
];

impl Backend {
    /// Its name in policies.
    pub fn name(self) -> &'static str {
        BACKENDS.iter().find(|(_, backend)| *backend == self).map_or("", |(name, _)| name)
    }

    /// Whether keys in another case are the same keys: Go's `encoding/json` folds the names of struct fields.
    pub(super) fn folds_keys(self) -> bool {
        self == Backend::Ollama
    }

    /// What an output limit comes to that may be below 1; `None` where it may not stand, since it would be dropped.
    ///
    /// `quoted` tells that it is written as a string, `settings` that it stands among the server's own sampling
    /// settings, not under a name of OpenAI's. vLLM, TGI and OpenAI refuse such limits themselves, or stop at once: there they stay.
    pub(super) fn low(self, amount: Amount, quoted: bool, settings: bool) -> Option<Amount> {
        match (self, amount) {
            // -1 is without end, -2 as far as the context goes; zero reads the prompt and stops.
            (Backend::LlamaCpp, Amount::Negative) => Some(Amount::Count(u64::MAX)),
            // A string is nothing to it, and nothing is without end.
            (Backend::LlamaCpp, Amount::Zero) if quoted => Some(Amount::Count(u64::MAX)),
            // Without end but for ten times the context. Its runner only looks at limits over zero.
            (Backend::Ollama, Amount::Zero | Amount::Negative) => Some(Amount::Count(u64::MAX)),
            // `max_completion_tokens or max_tokens`: zero is as good as nothing there.
            (Backend::Sglang, Amount::Zero | Amount::Negative) if !settings => None,
            (_, amount) => Some(amount),
        }
    }
}

/// Some of the backends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backends(u8);

impl Backends {
    /// All of them.
    pub const ALL: Backends = Backends(u8::MAX);

    /// One alone.
    pub const fn only(backend: Backend) -> Backends {
        Backends(1 << backend as u8)
    }

    /// All but one.
    pub const fn but(self, backend: Backend) -> Backends {
        Backends(self.0 & !(1 << backend as u8))
    }

    /// One more.
    pub const fn and(self, backend: Backend) -> Backends {
        Backends(self.0 | 1 << backend as u8)
    }

    /// Whether `backend` is among them.
    pub const fn has(self, backend: Backend) -> bool {
        self.0 >> backend as u8 & 1 == 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_hold_what_they_say() {
        for (name, backend) in BACKENDS {
            assert_eq!(backend.name(), name);
            assert!(Backends::ALL.has(backend) && !Backends::ALL.but(backend).has(backend));
            let only = BACKENDS.iter().filter(|(_, other)| Backends::only(backend).has(*other));
            assert_eq!(only.count(), 1);
        }
    }
}
