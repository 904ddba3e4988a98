// HyStart++ (RFC 9406) in Go, and its check against `slowstart vectors hystart++`, read from standard input.
//
// An example for ports: the type is the port, what follows plays the vectors. docs/reference/vectors.md describes the
// fields.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
)

const (
	minRTTThresh     = 4_000_000
	maxRTTThresh     = 16_000_000
	minRTTDivisor    = 8
	nRTTSample       = 8
	cssGrowthDivisor = 4
	cssRounds        = 5
	limitL           = 8
)

type facts struct {
	Next       uint64 `json:"next"`
	MSS        uint64 `json:"mss"`
	PacingOn   bool   `json:"pacing_on"`
	InRecovery bool   `json:"in_recovery"`
}

type ack struct {
	Upto  uint64  `json:"upto"`
	Bytes uint64  `json:"bytes"`
	RTT   *uint64 `json:"rtt_ns"`
	Limit string  `json:"limit"`
}

type hyStartPP struct {
	cwnd                 uint64
	begun                bool
	windowEnd            uint64
	lastMin, currentMin  uint64 // 0: none
	samples, roundsInCSS int
	baseline             uint64 // 0: not in conservative slow start
}

// onAck returns the reason to leave slow start, or "".
func (h *hyStartPP) onAck(f facts, a ack) string {
	if !h.begun {
		h.begun, h.windowEnd = true, f.Next
	} else if a.Upto > h.windowEnd {
		h.windowEnd = f.Next
		h.lastMin, h.currentMin, h.samples = h.currentMin, 0, 0
		if h.baseline != 0 {
			h.roundsInCSS++
			if h.roundsInCSS >= cssRounds {
				return "css-rounds"
			}
		}
	}
	if a.RTT != nil {
		if h.currentMin == 0 || *a.RTT < h.currentMin {
			h.currentMin = *a.RTT
		}
		h.samples++
		if h.samples >= nRTTSample {
			h.judge()
		}
	}
	grow := a.Bytes
	if !f.PacingOn {
		grow = min(grow, limitL*f.MSS)
	}
	if h.baseline != 0 {
		grow /= cssGrowthDivisor
	}
	// The window grows only if the sender used it, and not while a loss is repaired.
	if (a.Limit == "window" || a.Limit == "pacer") && !f.InRecovery {
		h.cwnd += grow
	}
	return ""
}

func (h *hyStartPP) judge() {
	if h.baseline != 0 && h.currentMin < h.baseline {
		h.baseline = 0
	}
	if h.baseline == 0 && h.lastMin != 0 {
		thresh := max(minRTTThresh, min(h.lastMin/minRTTDivisor, maxRTTThresh))
		if h.currentMin >= h.lastMin+thresh {
			h.baseline, h.roundsInCSS = h.currentMin, 0
		}
	}
}

type line struct {
	Case    string          `json:"case"`
	IW      uint64          `json:"iw"`
	Event   string          `json:"event"`
	Facts   json.RawMessage `json:"facts"`
	Ack     ack             `json:"ack"`
	Cwnd    uint64          `json:"cwnd"`
	Resumed bool            `json:"resumed"`
	Exit    *struct {
		Why  string `json:"why"`
		Cwnd uint64 `json:"cwnd"`
	} `json:"exit"`
}

func main() {
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(nil, 1<<20)
	var port *hyStartPP
	var f facts
	name, running, compared := "", false, 0
	for number := 1; in.Scan(); number++ {
		var l line
		if err := json.Unmarshal(in.Bytes(), &l); err != nil {
			fmt.Printf("line %d: %v\n", number, err)
			os.Exit(2)
		}
		if l.Case != "" {
			name, port, f, running = l.Case, &hyStartPP{cwnd: l.IW}, facts{}, true
			continue
		}
		// Facts that did not change are not repeated.
		if err := json.Unmarshal(l.Facts, &f); err != nil {
			fmt.Printf("line %d: %v\n", number, err)
			os.Exit(2)
		}
		if l.Resumed {
			// The loss proved spurious: slow start goes on with the window that it had.
			running, port.cwnd = true, l.Cwnd
		}
		if !running {
			continue
		}
		if l.Event == "ack" {
			why := port.onAck(f, l.Ack)
			wantWhy, want := "", l.Cwnd
			if l.Exit != nil {
				// On the ACK of the exit the avoidance already decides about the window.
				wantWhy, want = l.Exit.Why, l.Exit.Cwnd
			}
			compared++
			if why != wantWhy || port.cwnd != want {
				fmt.Printf("line %d, case %s: found %q %d, expected %q %d\n", number, name, why, port.cwnd, wantWhy, want)
				os.Exit(1)
			}
		} else if l.Exit == nil {
			port.cwnd = l.Cwnd // what the host does at the handshake and after an idle time
		}
		running = l.Exit == nil
	}
	if compared == 0 {
		fmt.Println("no vectors on standard input")
		os.Exit(1)
	}
	fmt.Printf("%d ACKs, all the same\n", compared)
}
