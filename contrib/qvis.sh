#!/bin/sh
# Converts a qlog of today's draft to that of draft 0.3, which qvis reads: sh contrib/qvis.sh search.server.sqlog >search.qvis.sqlog
exec sed -e '1s/.*/\x1e{"qlog_version":"0.3","qlog_format":"JSON-SEQ","trace":{"vantage_point":{"type":"server"},"common_fields":{"time_format":"relative","reference_time":0}}}/' \
	-e 's/"name":"quic:recovery_metrics_updated"/"name":"recovery:metrics_updated"/' \
	-e 's/"name":"quic:\(packet_lost\|congestion_state_updated\)"/"name":"recovery:\1"/' \
	-e 's/"name":"quic:/"name":"transport:/' "$@"
