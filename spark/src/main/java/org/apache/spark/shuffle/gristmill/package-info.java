/**
 * The seam to Spark: the shuffle manager, and all code that uses what is private to Spark.
 *
 * <p>In: Spark's calls, messages and blocks.<br>
 * Out: calls of the packages below {@code org.gristmill}, and what these ask of Spark.<br>
 * Called by: Spark, which makes the {@link GristmillShuffleManager}; no other package imports this one.<br>
 * Never: decides about a shuffle; it translates.
 *
 * <p>Spark may change these classes and members in any version. The first word is a class below
 * {@code org.apache.spark}; after it are the members used of a private class, or the private members used of a public
 * class. {@code PackagesTest} keeps the list complete.
 *
 * <pre>
 * ExecutorAllocationClient: isExecutorActive
 * MapOutputTracker: epoch epochLock getMapSizesByExecutorId
 * MapOutputTrackerMaster: getEpoch shuffleStatuses unregisterMapOutput updateMapOutput
 * ShuffleStatus: mapStatuses
 * SparkContext: dagScheduler executorAllocationManager listenerBus postEnvironmentUpdate schedulerBackend
 * SparkEnv: rpcEnv
 * TaskContext: killTaskIfInterrupted taskMemoryManager
 * api.python.PythonPartitioner:
 * executor.TaskMetrics: incDiskBytesSpilled incMemoryBytesSpilled incPeakExecutionMemory mergeShuffleReadMetrics
 * io.CompressionCodec$: createCodec supportsConcatenationOfSerializedStreams
 * memory.MemoryConsumer:
 * memory.MemoryManager: acquireStorageMemory maxOnHeapStorageMemory releaseStorageMemory
 * memory.MemoryMode: ON_HEAP
 * memory.TaskMemoryManager:
 * metrics.MetricsSystem: registerSource removeSource
 * metrics.source.Source:
 * network.BlockTransferService: fetchBlocks uploadBlock
 * network.buffer.FileSegmentManagedBuffer:
 * network.buffer.ManagedBuffer: nioByteBuffer size
 * network.buffer.NettyManagedBuffer: size
 * network.buffer.NioManagedBuffer:
 * network.client.StreamCallbackWithID:
 * network.shuffle.BlockFetchingListener:
 * network.shuffle.DownloadFileManager:
 * network.shuffle.MergedBlockMeta:
 * network.util.TransportConf:
 * rdd.RDD: isBarrier outputDeterministicLevel
 * rpc.RpcAddress:
 * rpc.RpcCallContext: reply sendFailure senderAddress
 * rpc.RpcEndpoint:
 * rpc.RpcEndpointRef: ask askSync send
 * rpc.RpcEnv: setupEndpoint stop
 * rpc.RpcTimeout:
 * rpc.ThreadSafeRpcEndpoint:
 * scheduler.DAGScheduler: taskSetFailed
 * scheduler.LiveListenerBus: post
 * scheduler.MapStatus$: apply
 * scheduler.MapStatus: location mapId
 * scheduler.SchedulerBackend:
 * scheduler.SparkListenerInterface:
 * scheduler.StageInfo: shuffleDepId
 * scheduler.Task:
 * scheduler.TaskSet:
 * serializer.Serializer: supportsRelocationOfSerializedObjects
 * serializer.SerializerManager: encryptionEnabled getSerializer wrapForEncryption wrapStream
 * shuffle.BaseShuffleHandle:
 * shuffle.IndexShuffleBlockResolver: addShuffleToSkip getBlockData getBlocksForShuffle getMergedBlockData
 *     getMergedBlockMeta getMigrationBlocks getStoredShuffles putShuffleBlockAsStream stop
 * shuffle.MetadataFetchFailedException:
 * shuffle.ShuffleBlockResolver:
 * shuffle.ShuffleManager:
 * shuffle.ShuffleReadMetricsReporter: incFetchWaitTime incLocalBlocksFetched incLocalBytesRead incRecordsRead
 *     incRemoteBlocksFetched incRemoteBytesRead incRemoteReqsDuration
 * shuffle.ShuffleReader:
 * shuffle.ShuffleWriteMetricsReporter: incBytesWritten incRecordsWritten incWriteTime
 * shuffle.ShuffleWriter:
 * shuffle.sort.SortShuffleManager: getReader getWriter registerShuffle shuffleBlockResolver stop unregisterShuffle
 * storage.BlockManager: blockManagerId blockTransferService diskBlockManager getDiskWriter serializerManager
 * storage.BlockManagerId$: apply
 * storage.BlockSavedOnDecommissionedBlockManagerException:
 * storage.DiskBlockManager: createTempLocalBlock getFile localDirs
 * storage.DiskBlockObjectWriter: close commitAndGet write
 * storage.FileSegment:
 * storage.TempLocalBlockId:
 * storage.TestBlockId:
 * util.collection.ExternalSorter: insertAllAndUpdateMetrics
 * </pre>
 */
package org.apache.spark.shuffle.gristmill;
