package org.tampu.internal.bulk;

import org.tampu.bulk.Protection;
import org.tampu.bulk.SlowPolicy;

/**
 * The settings of a sent flow. Times are in ns.
 *
 * @param frame longest payload of a frame
 * @param window bytes that may be sent and not acknowledged
 * @param checked whether payloads get a checksum
 * @param protection the least protection of each connection
 * @param ackWait longest wait of a start or a stop for a receiver without progress
 * @param resume time for which data is kept for a receiver with a broken connection
 * @param rate limit in bytes a second; 0 for none
 * @param receivers number of receivers that a start needs
 * @param connectWait longest wait for them
 */
public record SendSettings(String domain, String source, String stream, String flow, int frame, int window, boolean checked,
        Protection protection, SlowPolicy slow, long ackWait, long resume, double rate, int receivers, long connectWait) {}
