package org.tampu.log;

import java.util.List;
import java.util.Map;

/**
 * A record as the archive has it. Texts that a record does not have are empty; numbers are null.
 *
 * @param id incarnation, ring and number between dots, or empty for a record without an id
 * @param time time of logging, ns UTC
 * @param received time of reception by the collector, ns UTC, or null
 * @param level level of the record
 * @param priority the number that the writer gave instead of the level's, or null
 * @param message the message
 * @param logger named logger
 * @param file file of the place in the code
 * @param line line of it, or null
 * @param routine routine of it
 * @param host host
 * @param process process
 * @param thread thread
 * @param context context of the call
 * @param sourceObject component
 * @param audiences audiences; none: for everybody
 * @param array array
 * @param antenna antenna
 * @param uri address of further information
 * @param runId run or observation
 * @param stackId error chain that it belongs to
 * @param stackLevel place in the chain, 0 the outermost, or null
 * @param logId the writer's own number for the record
 * @param data named values, in order
 */
public record StoredRecord(
        String id,
        long time,
        Long received,
        Level level,
        Integer priority,
        String message,
        String logger,
        String file,
        Integer line,
        String routine,
        String host,
        String process,
        String thread,
        String context,
        String sourceObject,
        List<String> audiences,
        String array,
        String antenna,
        String uri,
        String runId,
        String stackId,
        Integer stackLevel,
        String logId,
        List<Map.Entry<String, String>> data) {}
