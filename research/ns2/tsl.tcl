# Web clients of the TSL paper in ns-2: PackMime, DelayBox and a bottleneck of 10 Mbit/s.
#
# ns tsl.tcl SEED RATE BUFFER CONNECTIONS IW SSTHRESH FOLDER
#
# RATE is in connections a second, BUFFER in packets. After CONNECTIONS that follow a warm-up of 60 s it prints one
# line of JSON; its traces are in FOLDER. IW and SSTHRESH are the window and the threshold after a lost SYN-ACK, in
# segments. ns-2 without syn-ack.patch does not know them: there the threshold is 2, because a timeout halves a small
# window, and the window is the initial one whatever was lost, which is (3,2).

lassign $argv seed rate buffer connections iw ssthresh folder
set warm_up 60.0
set bottleneck 10e6
set initial_rto 1.0

remove-all-packet-headers
add-packet-header IP TCP
set ns [new Simulator]
$ns use-scheduler Heap
$defaultRNG seed $seed

# Table 1 of the paper.
Agent/TCP set rtxcur_init_ $initial_rto
Agent/TCP set windowInit_ 3
Agent/TCP set window_ 1000
Agent/TCP set ecn_ 0
Agent/TCP/FullTcp set segsize_ 1460
Agent/TCP/FullTcp set segsperack_ 1
Agent/TCP/FullTcp set nodelay_ true
Agent/TCP/FullTcp set tsl_iw_ $iw
Agent/TCP/FullTcp set tsl_ssthresh_ $ssthresh

# Figure 1: servers, two routers with the delay boxes, clients.
set server [$ns node]
set near_server [$ns DelayBox]
set near_client [$ns DelayBox]
set client [$ns node]
$ns duplex-link $server $near_server 1000Mb 0ms DropTail
$ns duplex-link $near_server $near_client 10Mb 0ms DropTail
$ns duplex-link $near_client $client 1000Mb 0ms DropTail
foreach {from to packets} [list $near_server $near_client $buffer $near_client $near_server 100000 \
        $server $near_server 100000 $near_server $server 100000 $client $near_client 100000 $near_client $client 100000] {
    $ns queue-limit $from $to $packets
}

proc stream {variable} {
    $variable use-rng [new RNG]
    return $variable
}

# The round-trip time of a connection: one part on either side.
foreach {box side file} [list $near_client 0 client $near_server 1 server] {
    $box add-rule [$client id] [$server id] [stream [new RandomVariable/PackMimeHTTPXmit $rate $side]]
    $box set-delay-file $folder/$file
}

set web [new PackMimeHTTP]
$web set-client $client
$web set-server $server
$web set-rate $rate
$web set-TCP Sack
$web set-flow_arrive [stream [new RandomVariable/PackMimeHTTPFlowArrive $rate]]
$web set-req_size [stream [new RandomVariable/PackMimeHTTPFileSize $rate 0]]
$web set-rsp_size [stream [new RandomVariable/PackMimeHTTPFileSize $rate 1]]
# Servers answer at once.
set at_once [new RandomVariable/Constant]
$at_once set val_ 0
$web set-server_delay $at_once
$web set-outfile $folder/answers
$web set-warmup $warm_up

# What the bottleneck drops, with the flags of TCP, and what it carries each second.
Trace set show_tcphdr_ 1
set drops [open $folder/drops w]
set trace [new Trace/Drop]
$trace set src_ [$near_server id]
$trace set dst_ [$near_client id]
$trace attach $drops
$trace target [$ns set nullAgent_]
$ns drop-trace $near_server $near_client $trace
set queue [$ns monitor-queue $near_server $near_client ""]
proc each_second {} {
    global ns queue seconds
    lappend seconds [list [$queue set parrivals_] [$queue set bdepartures_]]
    $ns at [expr {[$ns now] + 1.0}] each_second
}

# The lines of a file as lists.
proc lines {file} {
    set in [open $file]
    set all {}
    foreach line [split [string trim [read $in]] \n] { lappend all [regexp -all -inline {\S+} $line] }
    close $in
    return $all
}

proc quantile {sorted share} {
    lindex $sorted [expr {min(int([llength $sorted] * $share), [llength $sorted] - 1)}]
}

proc report {} {
    global folder seconds warm_up bottleneck initial_rto drops near_client near_server
    close $drops
    $near_client close-delay-file
    $near_server close-delay-file
    # Each box draws a delay for each direction, since it takes the SYN-ACK of FullTcp for a SYN.
    foreach file {client server} {
        foreach line [lines $folder/$file] {
            lassign $line source target flow delay
            if {[info exists seen($file,$source,$flow)]} continue
            set seen($file,$source,$flow) 1
            if {![info exists rtt($flow)]} { set rtt($flow) 0.0 }
            set rtt($flow) [expr {$rtt($flow) + $delay / 1000.0}]
        }
    }
    # The SYN-ACKs that were dropped: when, and of which flow, by the port of the server. An agent keeps its port for
    # its next connection.
    foreach line [lines $folder/drops] {
        lassign $line event time from to type bytes flags flow source target number id ack tcp_flags
        incr dropped([expr {int($time)}])
        if {($tcp_flags & 0x12) == 0x12} {
            lappend lost([lindex [split $source .] 1]) [list $time $flow]
        }
    }
    set retried {}
    set answers 0
    set payload 0
    foreach line [lines $folder/answers] {
        lassign $line now request answer ms server
        incr answers
        incr payload $answer
        set port [lindex [split $server .] 1]
        set start [expr {$now - $ms / 1000.0}]
        if {![info exists lost($port)]} continue
        foreach drop $lost($port) {
            lassign $drop time flow
            if {$time >= $start && $time <= $now} {
                lappend retried [expr {($ms / 1000.0 - $initial_rto) / $rtt($flow)}]
                break
            }
        }
    }
    set retried [lsort -real $retried]
    set sum 0.0
    foreach r $retried { set sum [expr {$sum + $r}] }
    # Entry i is of second i + 1.
    set from [expr {int($warm_up) - 1}]
    lassign [lindex $seconds $from] first_came first_carried
    lassign [lindex $seconds end] last_came last_carried
    set total 0
    set peak 0.0
    for {set i $from} {$i < [llength $seconds] - 1} {incr i} {
        set came [expr {[lindex $seconds $i+1 0] - [lindex $seconds $i 0]}]
        set lost_now [expr {[info exists dropped([expr {$i + 1}])] ? $dropped([expr {$i + 1}]) : 0}]
        incr total $lost_now
        if {$came >= 100} { set peak [expr {max($peak, 100.0 * $lost_now / $came)}] }
    }
    set span [expr {([llength $seconds] - 1 - $from) * $bottleneck / 800.0}]
    set n [llength $retried]
    puts [format {{"answers":%d,"retried":%d,"loss":%.4f,"peak":%.3f,"utilisation":%.3f,"throughput":%.3f,"mean":%.4f,"p50":%.4f,"p90":%.4f,"p99":%.4f}} \
        $answers $n [expr {100.0 * $total / ($last_came - $first_came)}] $peak \
        [expr {($last_carried - $first_carried) / $span}] [expr {$payload / $span}] \
        [expr {$n ? $sum / $n : 0}] [quantile $retried 0.5] [quantile $retried 0.9] [quantile $retried 0.99]]
    exit 0
}

set end [expr {$warm_up + $connections / $rate}]
$ns at 0.0 "$web start"
$ns at 1.0 each_second
$ns at $end report
$ns run
