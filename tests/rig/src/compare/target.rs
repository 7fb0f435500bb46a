//! What is compared with what.

use crate::peers::Peer;

/// A way to the model server, or a run without rivals that says what the best possible is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// Straight to the server.
    Direct,
    /// Envoy without the filter; over two servers it shares the requests out by the least load.
    Envoy,
    /// Envoy without the filter, with circuit breakers.
    Breakers,
    /// Envoy with the filter, all classes on one server.
    Sluice,
    /// Envoy with the filter, a server for each class.
    SluiceTwo,
    /// Another gateway.
    Peer(Peer),
    /// Short requests alone, straight to the server.
    Alone,
    /// Short requests beside a fixed number of long ones, straight to the server: what no policy that lets as many run
    /// can beat.
    Bound,
}

impl Target {
    /// All of them.
    pub const ALL: [Target; 11] = [
        Target::Direct,
        Target::Envoy,
        Target::Breakers,
        Target::Sluice,
        Target::SluiceTwo,
        Target::Peer(Peer::Gateway),
        Target::Peer(Peer::Litellm),
        Target::Peer(Peer::SglangRouter),
        Target::Peer(Peer::VllmRouter),
        Target::Bound,
        Target::Alone,
    ];

    /// The target of this name. The error names all there are.
    pub fn named(name: &str) -> Result<Target, String> {
        let found = Target::ALL.into_iter().find(|target| target.name() == name);
        found.ok_or_else(|| format!("the targets are {}", Target::ALL.map(Target::name).join(", ")))
    }

    /// Its name in tables and pictures.
    pub fn name(self) -> &'static str {
        match self {
            Target::Direct => "direct",
            Target::Envoy => "envoy",
            Target::Breakers => "breakers",
            Target::Sluice => "sluice",
            Target::SluiceTwo => "sluice-two",
            Target::Peer(peer) => peer.name(),
            Target::Alone => "alone",
            Target::Bound => "bound",
        }
    }

    /// What it is, in a few words.
    pub fn about(self) -> &'static str {
        match self {
            Target::Direct => "straight to the server",
            Target::Envoy => "Envoy without the filter (envoy/baseline.yaml)",
            Target::Breakers => "the same with circuit breakers: as many requests as slots, others pending",
            Target::Sluice => "Envoy with the filter, one server for both classes",
            Target::SluiceTwo => "Envoy with the filter, a server for each class",
            Target::Peer(peer) => peer.about(),
            Target::Alone => "only the short requests, straight to the server",
            Target::Bound => "the short requests beside long ones in closed loop, straight to the server",
        }
    }

    /// Whether the long requests of the plan are sent, too.
    pub fn sends_longs(self) -> bool {
        !matches!(self, Target::Alone | Target::Bound)
    }

    /// Whether requests pass the filter.
    pub fn filters(self) -> bool {
        matches!(self, Target::Sluice | Target::SluiceTwo)
    }
}
