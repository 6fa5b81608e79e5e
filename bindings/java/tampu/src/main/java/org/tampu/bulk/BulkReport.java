package org.tampu.bulk;

import java.util.List;
import java.util.stream.Collectors;

/**
 * The result of a transfer.
 *
 * @param bytes amount of data
 * @param deliveries one for each receiver that took part
 */
public record BulkReport(String flow, long transfer, long bytes, double seconds, List<BulkDelivery> deliveries) {
    /** Returns whether all receivers have everything, and there is one. */
    public boolean isComplete() {
        return !deliveries.isEmpty() && deliveries.stream().allMatch(BulkDelivery::isComplete);
    }

    /** Returns the report, or fails with {@link BulkException.Kind#INCOMPLETE} and the reasons. */
    public BulkReport check() throws BulkException {
        if (!isComplete()) {
            String reasons = deliveries.stream().filter(one -> !one.isComplete()).map(String::valueOf).collect(Collectors.joining("; "));
            throw new BulkException(BulkException.Kind.INCOMPLETE, "flow '" + flow + "': transfer " + transfer + " is not complete: "
                    + (reasons.isEmpty() ? "no receiver took part" : reasons));
        }
        return this;
    }
}
