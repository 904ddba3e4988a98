# Runs ns-3 (the package ns3 on PyPI) over dumbbell topologies and prints the results of its senders, one JSON line per case.
#
# Standard input: one JSON object per line: {"case", "congestion_control", "rate_bps", "rtt_s", "queue_bytes",
# "mss_bytes", "flows", "duration_s"}. The topology is sender - 10 Gb/s 0.5 ms - router - bottleneck - router - 10 Gb/s
# 0.5 ms - receiver; the only queue that fills is the drop-tail one of the first router's device.
import json
import sys
import time

import cppyy
from ns import ns

cppyy.cppdef(
    r"""
#include <sstream>
using namespace ns3;

// The state of one sender, from its traces.
struct Watch {
    double exit_s = -1, first_loss_s = -1;
    double exit_cwnd = 0, peak_cwnd = 0, cwnd = 0;
    uint32_t mss = 1;
    void Cwnd(uint32_t, uint32_t now) {
        cwnd = double(now) / mss;
        if (exit_s < 0 && cwnd > peak_cwnd) peak_cwnd = cwnd;
    }
    void Threshold(uint32_t, uint32_t now) {
        if (exit_s < 0 && now < 0x7fffffff) {
            exit_s = Simulator::Now().GetSeconds();
            exit_cwnd = cwnd;
        }
    }
    void State(const TcpSocketState::TcpCongState_t, const TcpSocketState::TcpCongState_t now) {
        if (first_loss_s < 0 && now == TcpSocketState::CA_RECOVERY) first_loss_s = Simulator::Now().GetSeconds();
    }
};

struct Count {
    uint64_t drops = 0, packets = 0;
    void Drop(Ptr<const Packet>) { drops++; }
    void Sent(Ptr<const Packet> p) { packets++; }
};

std::string Dumbbell(std::string control, uint64_t rate, double rtt, std::string queue, uint32_t mss, uint32_t flows,
                     double duration) {
    // Defaults persist between cases, so every parameter is set here.
    Config::SetDefault("ns3::TcpL4Protocol::SocketType", TypeIdValue(TypeId::LookupByName("ns3::" + control)));
    Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(mss));
    Config::SetDefault("ns3::TcpSocket::InitialCwnd", UintegerValue(10));
    Config::SetDefault("ns3::TcpSocket::DelAckCount", UintegerValue(2));
    Config::SetDefault("ns3::TcpSocketBase::MinRto", TimeValue(Seconds(1)));
    Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(1 << 30));
    Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(1 << 30));

    NodeContainer senders(flows), receivers(flows), routers(2);
    InternetStackHelper stack;
    stack.Install(senders);
    stack.Install(receivers);
    stack.Install(routers);

    PointToPointHelper access;
    access.SetDeviceAttribute("DataRate", DataRateValue(DataRate("10Gbps")));
    access.SetChannelAttribute("Delay", TimeValue(Seconds(0.0005)));
    access.SetQueue("ns3::DropTailQueue<Packet>", "MaxSize", QueueSizeValue(QueueSize("1000000p")));
    PointToPointHelper middle;
    middle.SetDeviceAttribute("DataRate", DataRateValue(DataRate(rate)));
    middle.SetChannelAttribute("Delay", TimeValue(Seconds(rtt / 2 - 0.001)));
    middle.SetQueue("ns3::DropTailQueue<Packet>", "MaxSize", QueueSizeValue(QueueSize(queue)));

    TrafficControlHelper none;
    NetDeviceContainer bottleneck = middle.Install(routers.Get(0), routers.Get(1));
    Ipv4AddressHelper address;
    address.SetBase("10.255.0.0", "255.255.255.0");
    address.Assign(bottleneck);
    none.Uninstall(bottleneck);

    std::vector<Ipv4Address> to;
    for (uint32_t i = 0; i < flows; i++) {
        NetDeviceContainer left = access.Install(senders.Get(i), routers.Get(0));
        NetDeviceContainer right = access.Install(routers.Get(1), receivers.Get(i));
        std::ostringstream a, b;
        a << "10.1." << i << ".0";
        b << "10.2." << i << ".0";
        address.SetBase(a.str().c_str(), "255.255.255.0");
        address.Assign(left);
        address.SetBase(b.str().c_str(), "255.255.255.0");
        to.push_back(address.Assign(right).GetAddress(1));
        none.Uninstall(left);
        none.Uninstall(right);
    }
    Ipv4GlobalRoutingHelper::PopulateRoutingTables();

    Count count;
    Ptr<PointToPointNetDevice> device = DynamicCast<PointToPointNetDevice>(bottleneck.Get(0));
    // With flow control, packets that do not fit into the queue of the device are dropped before it.
    routers.Get(0)->GetObject<TrafficControlLayer>()->TraceConnectWithoutContext("TcDrop", MakeCallback(&Count::Drop, &count));
    device->GetQueue()->TraceConnectWithoutContext("Drop", MakeCallback(&Count::Drop, &count));
    device->TraceConnectWithoutContext("MacTx", MakeCallback(&Count::Sent, &count));

    std::vector<Watch> watches(flows);
    std::vector<Ptr<PacketSink>> sinks;
    for (uint32_t i = 0; i < flows; i++) {
        PacketSinkHelper sink("ns3::TcpSocketFactory", InetSocketAddress(Ipv4Address::GetAny(), 5000));
        ApplicationContainer received = sink.Install(receivers.Get(i));
        received.Start(Seconds(0));
        sinks.push_back(DynamicCast<PacketSink>(received.Get(0)));
        BulkSendHelper bulk("ns3::TcpSocketFactory", InetSocketAddress(to[i], 5000));
        bulk.SetAttribute("SendSize", UintegerValue(mss * 10));
        ApplicationContainer sent = bulk.Install(senders.Get(i));
        Ptr<BulkSendApplication> app = DynamicCast<BulkSendApplication>(sent.Get(0));
        double start = i * 0.001;
        app->SetStartTime(Seconds(start));
        Watch* watch = &watches[i];
        watch->mss = mss;
        Simulator::Schedule(Seconds(start) + NanoSeconds(1), [app, watch]() {
            Ptr<Socket> socket = app->GetSocket();
            socket->TraceConnectWithoutContext("CongestionWindow", MakeCallback(&Watch::Cwnd, watch));
            socket->TraceConnectWithoutContext("SlowStartThreshold", MakeCallback(&Watch::Threshold, watch));
            socket->TraceConnectWithoutContext("CongState", MakeCallback(&Watch::State, watch));
        });
    }
    Simulator::Stop(Seconds(duration));
    Simulator::Run();
    std::ostringstream out;
    out.precision(12);
    uint64_t bytes = 0;
    for (auto& s : sinks) bytes += s->GetTotalRx();
    out << "{\"drops\":" << count.drops << ",\"packets\":" << count.packets << ",\"delivered_bytes\":" << bytes
        << ",\"flows\":[";
    for (uint32_t i = 0; i < flows; i++) {
        Watch& w = watches[i];
        out << (i ? "," : "") << "{\"exit_s\":" << w.exit_s << ",\"exit_packets\":" << w.exit_cwnd
            << ",\"first_loss_s\":" << w.first_loss_s << "}";
    }
    out << "]}";
    Simulator::Destroy();
    return out.str();
}
"""
)

for line in sys.stdin:
    c = json.loads(line)
    before = time.process_time()
    result = json.loads(
        str(
            cppyy.gbl.Dumbbell(
                c["congestion_control"],
                c["rate_bps"],
                c["rtt_s"],
                f"{c['queue_bytes']}B",
                c["mss_bytes"],
                c["flows"],
                c["duration_s"],
            )
        )
    )
    result["case"] = c["case"]
    result["cpu_s"] = time.process_time() - before
    print(json.dumps(result), flush=True)
