//! The list of startups that have an object for the kernel, with name, object and parameters of each.

use crate::error::KernelError;
use slowstart::param::ParamValue;
use slowstart::registry::Algorithm;

/// Conversion of a parameter of the registry to a constant of an object.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Scale {
    /// The number itself, without a unit.
    Whole,
    /// The number in millionths.
    Millionths,
    /// A number of seconds, in nanoseconds.
    Nanoseconds,
    /// A word, as its index in this list.
    Words(&'static [&'static str]),
}

/// A startup that is available as a congestion control.
#[derive(Debug)]
pub struct Control {
    /// Its name in the registry.
    pub startup: &'static str,
    /// Its name in the kernel with CUBIC after it; with Reno, `_reno` is appended. At most 15 bytes.
    pub kernel: &'static str,
    /// The name the object was compiled with.
    pub(crate) compiled: &'static str,
    pub(crate) object: &'static [u8],
    /// Its parameters, in the order of the object's constants.
    pub params: &'static [(&'static str, Scale)],
}

macro_rules! object {
    ($name:literal) => {
        include_bytes!(concat!(env!("OUT_DIR"), "/", $name, ".bpf.o"))
    };
}

const OFF_ON: Scale = Scale::Words(&["off", "on"]);
const SEARCH: &[(&str, Scale)] = &[
    ("threshold", Scale::Millionths),
    ("window", Scale::Millionths),
    ("expected", Scale::Words(&["twice-delivered", "sent"])),
    ("look_back", Scale::Words(&["latest", "initial"])),
    ("drain", OFF_ON),
    ("drain_acks", Scale::Whole),
    ("missed", Scale::Whole),
];
const SEARCH_MODULES: &[(&str, Scale)] = &[
    ("threshold", Scale::Millionths),
    ("window", Scale::Millionths),
    ("expected", Scale::Words(&["twice-delivered", "sent"])),
    ("look_back", Scale::Words(&["latest", "initial"])),
    ("drain", OFF_ON),
    ("drain_acks", Scale::Whole),
    ("rollback", OFF_ON),
    ("missed", Scale::Whole),
    ("keep_width", OFF_ON),
    ("app_limited", OFF_ON),
    ("bins", Scale::Words(&["exact", "scaled"])),
    ("extra", Scale::Whole),
    ("interpolation", OFF_ON),
];
const HYSTART_PP: &[(&str, Scale)] = &[
    ("min_rtt_thresh", Scale::Nanoseconds),
    ("max_rtt_thresh", Scale::Nanoseconds),
    ("rtt_divisor", Scale::Whole),
    ("samples", Scale::Whole),
    ("css_divisor", Scale::Whole),
    ("css_rounds", Scale::Whole),
    ("limit", Scale::Whole),
    ("baseline", Scale::Words(&["rfc", "entry"])),
    ("fresh", OFF_ON),
];
const ESS: &[(&str, Scale)] = &[
    ("guard", Scale::Millionths),
    ("estimate", Scale::Words(&["train", "cycle", "first-rtt"])),
    ("jump", Scale::Words(&["burst", "paced"])),
];
/// All but `few`: the kernel reduces cwnd at each loss.
const RATE_BOUND: &[(&str, Scale)] = &[
    ("fast", Scale::Millionths),
    ("over", Scale::Millionths),
    ("creep", Scale::Millionths),
    ("follow", Scale::Millionths),
    ("keep", Scale::Millionths),
    ("noise", OFF_ON),
    ("brake", OFF_ON),
];
/// All but what the avoidance is to look for, which the kernel's CUBIC cannot be told, HyStart++ beside it,
/// and the first flight.
const RAPID: &[(&str, Scale)] = &[
    ("beta", Scale::Millionths),
    ("beta_ecn", Scale::Millionths),
    ("k", Scale::Words(&["11/18", "2/3"])),
    ("keep_iw", OFF_ON),
];
const RESTRICTED: &[(&str, Scale)] = &[
    ("set_point", Scale::Millionths),
    ("kp", Scale::Millionths),
    ("ti", Scale::Nanoseconds),
    ("td", Scale::Nanoseconds),
    ("hold", OFF_ON),
];
const TSL: &[(&str, Scale)] =
    &[("iw", Scale::Whole), ("ssthresh", Scale::Whole), ("spurious", Scale::Words(&["alike", "undo"]))];
/// The rules of Linux.
const HYSTART_LINUX: &[(&str, Scale)] = &[
    ("rules", Scale::Words(&["6.13", "5.16", "5.10"])),
    ("detect", Scale::Words(&["both", "train", "delay"])),
    ("low_window", Scale::Whole),
    ("ack_delta", Scale::Nanoseconds),
    ("pause", Scale::Whole),
];
/// The other rules.
const HYSTART: &[(&str, Scale)] = &[
    ("rules", Scale::Words(&["ns3", "paper"])),
    ("detect", Scale::Words(&["both", "train", "delay"])),
    ("low_window", Scale::Whole),
    ("ack_delta", Scale::Nanoseconds),
    ("latch", OFF_ON),
];
const VEGAS: &[(&str, Scale)] = &[("rules", Scale::Words(&["original", "linux"])), ("gamma", Scale::Whole)];

/// Every startup that the kernel can run.
pub const TABLE: &[Control] = &[
    // The kernel has one growth rule, by bytes, so there is no parameter for it.
    Control {
        startup: "standard",
        kernel: "ss_std",
        compiled: "ss_std",
        object: object!("standard"),
        params: &[],
    },
    Control {
        startup: "limited",
        kernel: "ss_limited",
        compiled: "ss_limited",
        object: object!("limited"),
        params: &[("max_ssthresh", Scale::Whole)],
    },
    // The kernel's own HyStart takes none of the parameters of this project's model of it.
    Control {
        startup: "hystart",
        kernel: "ss_hystart",
        compiled: "ss_hystart",
        object: object!("hystart"),
        params: &[],
    },
    // With parameters this one runs in its place.
    Control {
        startup: "hystart",
        kernel: "ss_hspause",
        compiled: "ss_hspause",
        object: object!("hystart_linux"),
        params: HYSTART_LINUX,
    },
    Control {
        startup: "hystart++",
        kernel: "ss_hspp",
        compiled: "ss_hspp",
        object: object!("hystart_pp"),
        params: HYSTART_PP,
    },
    Control {
        startup: "search-1.0",
        kernel: "ss_search1",
        compiled: "ss_search",
        object: object!("search"),
        params: SEARCH,
    },
    Control {
        startup: "search-2.0",
        kernel: "ss_search2",
        compiled: "ss_search",
        object: object!("search"),
        params: SEARCH,
    },
    Control {
        startup: "search",
        kernel: "ss_search",
        compiled: "ss_search",
        object: object!("search"),
        params: SEARCH,
    },
    Control {
        startup: "search-3.0",
        kernel: "ss_srch30",
        compiled: "ss_srch30",
        object: object!("search_modules"),
        params: SEARCH_MODULES,
    },
    Control {
        startup: "search-3.1",
        kernel: "ss_srch31",
        compiled: "ss_srch30",
        object: object!("search_modules"),
        params: SEARCH_MODULES,
    },
    Control {
        startup: "search-3.1-shipped",
        kernel: "ss_srch31s",
        compiled: "ss_srch30",
        object: object!("search_modules"),
        params: SEARCH_MODULES,
    },
    Control {
        startup: "search-3.2",
        kernel: "ss_srch32",
        compiled: "ss_srch30",
        object: object!("search_modules"),
        params: SEARCH_MODULES,
    },
    Control {
        startup: "search-4.0",
        kernel: "ss_srch40",
        compiled: "ss_srch30",
        object: object!("search_modules"),
        params: SEARCH_MODULES,
    },
    Control { startup: "ess", kernel: "ss_ess", compiled: "ss_ess", object: object!("ess"), params: ESS },
    Control {
        startup: "rate-bound",
        kernel: "ss_rbound",
        compiled: "ss_rbound",
        object: object!("rate_bound"),
        params: RATE_BOUND,
    },
    Control {
        startup: "rapid-start",
        kernel: "ss_rapid",
        compiled: "ss_rapid",
        object: object!("rapid_start"),
        params: RAPID,
    },
    Control {
        startup: "rapid-start-00",
        kernel: "ss_rapid00",
        compiled: "ss_rapid",
        object: object!("rapid_start"),
        params: RAPID,
    },
    Control {
        startup: "restricted",
        kernel: "ss_rss",
        compiled: "ss_rss",
        object: object!("restricted"),
        params: RESTRICTED,
    },
    Control {
        startup: "stopeg",
        kernel: "ss_stopeg",
        compiled: "ss_stopeg",
        object: object!("stopeg"),
        params: &[("share", Scale::Millionths)],
    },
    Control {
        startup: "hystart-paper",
        kernel: "ss_hspap",
        compiled: "ss_hspap",
        object: object!("hystart_paper"),
        params: HYSTART,
    },
    Control {
        startup: "hystart-ns3",
        kernel: "ss_hsns3",
        compiled: "ss_hspap",
        object: object!("hystart_paper"),
        params: HYSTART,
    },
    Control {
        startup: "search-neqo",
        kernel: "ss_sr_neqo",
        compiled: "ss_search",
        object: object!("search"),
        params: SEARCH,
    },
    Control {
        startup: "hybla",
        kernel: "ss_hybla",
        compiled: "ss_hybla",
        object: object!("hybla"),
        params: &[("rtt0", Scale::Nanoseconds)],
    },
    Control {
        startup: "vegas",
        kernel: "ss_vegas",
        compiled: "ss_vegas",
        object: object!("vegas"),
        params: VEGAS,
    },
    Control {
        startup: "vegas-linux",
        kernel: "ss_vegasl",
        compiled: "ss_vegas",
        object: object!("vegas"),
        params: VEGAS,
    },
    Control {
        startup: "capstart",
        kernel: "ss_capst",
        compiled: "ss_capst",
        object: object!("capstart"),
        params: &[("max_ssthresh", Scale::Whole), ("pairs", Scale::Whole), ("nic", Scale::Whole)],
    },
    Control {
        startup: "packet-pair",
        kernel: "ss_pair",
        compiled: "ss_pair",
        object: object!("packet_pair"),
        params: &[("pairs", Scale::Whole)],
    },
    Control {
        startup: "adaptive",
        kernel: "ss_astart",
        compiled: "ss_astart",
        object: object!("adaptive"),
        params: &[("tau", Scale::Millionths)],
    },
    Control {
        startup: "delay",
        kernel: "ss_delay",
        compiled: "ss_delay",
        object: object!("delay"),
        params: &[("tau", Scale::Nanoseconds)],
    },
    Control {
        startup: "abc",
        kernel: "ss_abc",
        compiled: "ss_abc",
        object: object!("abc"),
        params: &[("limit", Scale::Whole)],
    },
    Control {
        startup: "smooth",
        kernel: "ss_smooth",
        compiled: "ss_smooth",
        object: object!("smooth"),
        params: &[("ssthresh", Scale::Whole), ("steps", Scale::Whole)],
    },
    Control {
        startup: "jump-start",
        kernel: "ss_jump",
        compiled: "ss_jump",
        object: object!("jump_start"),
        params: &[],
    },
    Control {
        startup: "suss",
        kernel: "ss_suss",
        compiled: "ss_suss",
        object: object!("suss"),
        params: &[("rounds", Scale::Whole), ("low_window", Scale::Whole), ("ack_delta", Scale::Nanoseconds)],
    },
    Control {
        startup: "stateful",
        kernel: "ss_state",
        compiled: "ss_state",
        object: object!("stateful"),
        params: &[],
    },
    Control {
        startup: "careful-resume",
        kernel: "ss_resume",
        compiled: "ss_resume",
        object: object!("careful_resume"),
        params: &[("jump", Scale::Millionths), ("beta", Scale::Millionths)],
    },
    Control { startup: "bbr3", kernel: "ss_bbr3", compiled: "ss_bbr3", object: object!("bbr3"), params: &[] },
    Control {
        startup: "bbr2-quiche",
        kernel: "ss_bbr2q",
        compiled: "ss_bbr2q",
        object: object!("bbr2_quiche"),
        params: &[("queue_rounds", Scale::Whole), ("loss_events", Scale::Whole)],
    },
    Control { startup: "tsl", kernel: "ss_tsl", compiled: "ss_tsl", object: object!("tsl"), params: TSL },
];

impl Control {
    /// Returns the entry of a startup, by its name in the registry: the first that has the parameters `given`.
    pub fn of(startup: &str, given: &[String]) -> Result<&'static Self, KernelError> {
        let has = |c: &&Self| given.iter().all(|k| c.params.iter().any(|(name, _)| name == k));
        // Of several that lack one, the last has most.
        let last = || Self::all_of(startup).last();
        Self::all_of(startup).find(has).or_else(last).ok_or_else(|| {
            let names: Vec<&str> = TABLE.iter().map(|c| c.startup).collect();
            KernelError::refused(
                startup,
                format!("has no object for the kernel; these have: {}", names.join(", ")),
            )
        })
    }

    /// Returns the entries of a startup: its parameters may choose among several.
    pub fn all_of(startup: &str) -> impl Iterator<Item = &'static Self> {
        TABLE.iter().filter(move |c| c.startup == startup)
    }

    /// Returns how it is written on the command line, such as `search` or `hystart:pause=2`.
    pub fn written(&self) -> &'static str {
        if self.kernel == "ss_hspause" { "hystart:pause=2" } else { self.startup }
    }

    /// Returns the constants of the object for a startup with these parameters. `given` are the names of
    /// those that were written: one that the object does not have is an error.
    pub(crate) fn constants(&self, s: &Algorithm, given: &[String]) -> Result<Vec<u64>, KernelError> {
        if let Some(key) = given.iter().find(|k| !self.params.iter().any(|(name, _)| name == k)) {
            let why = "the kernel has no such parameter that applies to single connections";
            return Err(KernelError::refused(format!("{}:{key}", self.startup), why));
        }
        let mut all = Vec::new();
        s.each_param(&mut |k, v| all.push((k, v)));
        let constant = |(name, scale): &(&str, Scale)| {
            let value = all.iter().find(|(k, _)| k == name).map(|(_, v)| *v);
            Some(match (value?, scale) {
                (ParamValue::Number(n), Scale::Whole) => n as u64,
                (ParamValue::Number(n), Scale::Millionths) => (n * 1e6).round() as u64,
                (ParamValue::Number(n), Scale::Nanoseconds) => (n * 1e9).round() as u64,
                (ParamValue::Word(w), Scale::Words(words)) => words.iter().position(|x| *x == w)? as u64,
                _ => return None,
            })
        };
        self.params
            .iter()
            .map(|p| {
                constant(p).ok_or_else(|| {
                    KernelError::refused(p.0, "the object does not support this value of the parameter")
                })
            })
            .collect()
    }

    /// Returns why it has no form with Reno after it, or `None` if it has.
    pub fn no_reno(&self) -> Option<&'static str> {
        match self.written() {
            "hystart" => Some("the kernel's HyStart is part of its CUBIC, so it has no Reno form"),
            "bbr3" | "bbr2-quiche" => Some("it is a complete congestion control, which no avoidance follows"),
            _ => None,
        }
    }

    /// Returns its name in the kernel, with Reno or CUBIC after it.
    pub fn name(&self, reno: bool) -> String {
        format!("{}{}", self.kernel, if reno { "_reno" } else { "" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use slowstart::registry::named;

    #[test]
    fn names_are_in_the_registry_and_fit_the_kernel() {
        for c in TABLE {
            assert!(named(c.startup).is_some(), "{}", c.startup);
            assert!(c.name(true).len() <= 15, "{}", c.name(true));
            assert!(c.kernel.len() >= c.compiled.len(), "{}", c.kernel);
        }
        let mut names: Vec<&str> = TABLE.iter().map(|c| c.kernel).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), TABLE.len());
    }

    /// Parameters that an object lacks: those of other versions of SEARCH, another reading of the PID, the
    /// losses that rate-bound stands, of which every one ends it in the kernel, and pacing and `W_max` of
    /// rapid start, where the threshold of adaptive start begins, and other readings of HyStart's train and of
    /// SEARCH's shortfall, and HyStart's pause and sticky detection by other rules. They are refused if given.
    const NOT_IN_OBJECTS: [&str; 19] = [
        "rollback",
        "keep_width",
        "app_limited",
        "skip",
        "bins",
        "extra",
        "interpolation",
        "every",
        "few",
        "pace",
        "iw",
        "w_max",
        "hystart",
        "begin",
        "train",
        "at_ssthresh",
        "latch",
        "pause",
        "share_of",
    ];

    #[test]
    fn every_parameter_of_a_startup_reaches_its_object() {
        for c in TABLE.iter().filter(|c| !["standard", "hystart"].contains(&c.written())) {
            let s = named(c.startup).expect("in the registry").algorithm;
            let mut known = Vec::new();
            s.each_param(&mut |k, v| {
                if NOT_IN_OBJECTS.contains(&k) && !c.params.iter().any(|p| p.0 == k) {
                    let off = match k {
                        "extra" => v == ParamValue::Number(15.0),
                        "every" | "pause" => v == ParamValue::Number(0.0),
                        "few" => c.startup == "rate-bound",
                        "pace" | "w_max" => c.startup.starts_with("rapid-start"),
                        "iw" => v == ParamValue::Number(1.0),
                        "begin" => v == ParamValue::Word("iw"),
                        "train" => v == ParamValue::Word("gap"),
                        "share_of" => v == ParamValue::Word("expected"),
                        "interpolation" => v == ParamValue::Word("on"),
                        _ => [ParamValue::Word("off"), ParamValue::Word("exact")].contains(&v),
                    };
                    assert!(off, "{}:{k} would be ignored without an error", c.startup);
                } else {
                    known.push(k);
                }
            });
            assert_eq!(known, c.params.iter().map(|p| p.0).collect::<Vec<_>>(), "{}", c.startup);
            assert_eq!(c.constants(&s, &[]).expect("all known").len(), c.params.len());
        }
    }

    #[test]
    fn constants_are_in_the_units_of_the_objects() {
        let s = named("search-2.0").expect("in the registry").algorithm;
        let c = Control::of("search-2.0", &[]).expect("in the table");
        assert_eq!(c.constants(&s, &[]).unwrap(), [350_000, 3_500_000, 0, 0, 0, 3, u64::from(u32::MAX)]);
        let s = named("hystart++").expect("in the registry").algorithm;
        let c = Control::of("hystart++", &[]).expect("in the table");
        assert_eq!(c.constants(&s, &[]).unwrap(), [4_000_000, 16_000_000, 8, 8, 4, 5, 8, 0, 0]);
    }

    #[test]
    fn parameters_choose_among_the_objects_of_a_startup() {
        for c in TABLE {
            let given =
                c.written().split_once(':').map(|(_, p)| p.split('=').next().unwrap_or(p).to_string());
            let chosen = Control::of(c.startup, given.as_slice()).expect("in the table");
            assert_eq!(chosen.kernel, c.kernel);
        }
    }

    #[test]
    fn a_parameter_that_the_object_lacks_is_refused() {
        let s = named("hystart").expect("in the registry").algorithm;
        let given = ["train".to_string()];
        let e = Control::of("hystart", &given).unwrap().constants(&s, &given).unwrap_err();
        assert!(e.to_string().contains("hystart:train"), "{e}");
    }
}
