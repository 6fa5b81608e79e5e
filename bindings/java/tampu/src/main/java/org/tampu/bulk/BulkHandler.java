package org.tampu.bulk;

import java.nio.ByteBuffer;
import java.util.List;

/**
 * The callbacks of a receiver's flow. The thread that reads the flow's connection calls them one at a time; while one runs,
 * the sender waits in the end. Any exception is a fault, which the sender gets; {@link GiveUp} refuses the rest.
 */
public interface BulkHandler {
    /**
     * The start of a transfer.
     *
     * @param transfer its number in this life of the sender's flow
     * @param source stable name of the sender
     * @param address address of the sender
     * @param parameter the sender's parameter
     */
    record Start(long transfer, String source, String address, byte[] parameter) {}

    /**
     * The end of a transfer.
     *
     * @param complete whether the sender stopped it and nothing is missing
     * @param stopped whether the sender stopped it; if not, the sender gave it up or is gone
     * @param bytes number of delivered bytes
     * @param lost the missing ranges, in order
     * @param faults the faults in words, each kind once
     */
    record End(long transfer, boolean complete, boolean stopped, long bytes, List<LostRange> lost, List<String> faults) {}

    /** Called at the start; returns the number of bytes that are here already, 0 for most. */
    long start(Start start) throws Exception;

    /**
     * Called with a frame of data.
     *
     * @param bytes the data, valid during the call
     * @param offset its place in the transfer
     * @param endOfBlock whether a block of the sender ends here
     */
    void data(ByteBuffer bytes, long offset, boolean endOfBlock) throws Exception;

    /** Called at the end, which always comes. The sender's {@code stop} returns after this call. */
    void stop(End end) throws Exception;

    /** Called when the sender has given the transfer up. */
    default void reset(End end) throws Exception {
        stop(end);
    }

    /** Called for data that is lost. */
    default void lost(LostRange range) {}
}
