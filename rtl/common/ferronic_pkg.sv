// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// Types shared between the blocks of the Ferronic core. Everything here is independent of the width
// of the data path; streams of DATA_W bits are separate ports beside these structs.
package ferronic_pkg;

  // Largest configuration the types below can name: 64 pairs are 128 virtqueues.
  localparam int unsigned MaxQueues = 128;
  localparam int unsigned QidW = 7;
  // Virtqueue sizes are powers of two up to this (virtio 1.2, "Virtqueues").
  localparam int unsigned MaxQueueSize = 2048;

  // Largest frame on the wire, without FCS, and the smallest that has an Ethernet header.
  localparam int unsigned MaxFrameBytes = 9216;
  localparam int unsigned MinFrameBytes = 14;
  // struct virtio_net_hdr_mrg_rxbuf (virtio 1.2, "Device Operation" of the network device).
  localparam int unsigned VirtioHdrBytes = 12;

  typedef logic [QidW-1:0] qid_t;

  // ---------------------------------------------------------------- control registers
  // One access at a time: `valid` is held with its payload stable until the one-cycle `ack`.
  typedef struct packed {
    logic        valid;
    logic        write;
    logic [15:0] addr;   // byte offset in BAR0, a multiple of 4
    logic [ 3:0] be;     // byte lanes of this DW that the host asked for
    logic [31:0] wdata;
  } reg_req_t;

  typedef struct packed {
    logic        ack;
    logic [31:0] rdata;  // valid with ack; lanes that were not asked for are ignored
  } reg_rsp_t;

  // ---------------------------------------------------------------- DMA reads
  typedef enum logic {
    DstCtl = 1'b0,       // control RAM: rings and descriptors
    DstTx  = 1'b1        // transmit frame RAM
  } dma_dst_e;

  // A read of host memory into on-card RAM. For DstCtl, ptr[1:0] must equal addr[1:0].
  typedef struct packed {
    logic [63:0] addr;
    logic [15:0] len;    // bytes, at least 1
    logic [15:0] ptr;    // byte address in the destination RAM, wraps at its size
    logic [ 7:0] cookie; // returned with the completion
  } dma_rd_req_t;

  typedef struct packed {
    logic       valid;   // one cycle, cannot be held off; requests finish in the order of issue
    logic       err;     // some byte was not read: UR, CA, poisoned, timed out, or reads are off
    logic [7:0] cookie;
  } dma_rd_done_t;

  // ---------------------------------------------------------------- DMA writes
  // A write of bytes from the receive frame RAM to host memory. Commands finish in order.
  typedef struct packed {
    logic [63:0] addr;
    logic [15:0] len;    // bytes, at least 1
    logic [15:0] ptr;    // byte address in the receive RAM, wraps at its size
  } dma_wr_cmd_t;

  // One ready-made posted write TLP of whole DWs, for rings and MSI-X. The caller sees to it that
  // it is at most 128 bytes, the smallest MPS, and does not cross 4 KiB.
  typedef struct packed {
    logic [63:2] addr;
    logic [ 5:0] dw_len; // 1 to 32
    logic [ 3:0] first_be;
    logic [ 3:0] last_be; // 0 if dw_len is 1
  } ctl_wr_hdr_t;

  // ---------------------------------------------------------------- virtqueues
  // One segment of a buffer: the ring-neutral token is the sequence of segments up to `last`.
  typedef struct packed {
    logic        none;   // no buffer is posted now; nothing else is valid
    logic        off;    // with none: and none will be, the queue is not enabled
    logic        err;    // broken chain: drop what was begun; the queue has been stopped
    logic        last;   // last segment of this buffer
    logic [15:0] id;     // head descriptor, names the buffer in the used ring
    logic [31:0] len;    // bytes, at least 1 unless err or none
    logic [63:0] addr;
  } vq_seg_t;

  // A used-ring entry. Entries are visible to the driver only after one with `publish`, all at
  // once.
  typedef struct packed {
    qid_t        q;
    logic        publish;
    logic [15:0] id;
    logic [31:0] len;
  } vq_used_t;

  // ---------------------------------------------------------------- frames
  // A whole frame in a frame RAM. `ptr` is the byte address of the virtio header; the first byte of
  // the frame is VirtioHdrBytes further on.
  typedef struct packed {
    logic [15:0] ptr;
    logic [15:0] len;    // bytes of the frame, without header and FCS
    logic [15:0] hash;   // equal for frames of one flow
  } rx_frame_t;

  // ---------------------------------------------------------------- interrupts and counters
  typedef struct packed {
    logic        valid;
    logic [15:0] vector; // 0xffff (NO_VECTOR) is accepted and ignored
  } irq_req_t;

  // What a data path block tells the counters about one queue, at most one event a cycle each.
  typedef struct packed {
    logic        valid;
    qid_t        q;
    logic        drop;   // the frame was dropped: count it and nothing else
    logic [15:0] bytes;
  } frame_event_t;

  // Transmit offloads that the driver negotiated (CSUM and HOST_* of the network device).
  typedef struct packed {
    logic csum;
    logic tso4;
    logic tso6;
    logic ecn;
    logic uso;
  } tx_offload_t;

  // Where the headers of a frame lie, in units of 2 bytes from its start.
  typedef struct packed {
    logic       v6;
    logic       udp;     // otherwise TCP
    logic [6:0] ip_at;
    logic [6:0] l4_at;
  } hdr_layout_t;

  // ---------------------------------------------------------------- straps of the card
  typedef struct packed {
    logic [47:0] mac;         // first byte of the address in bits 47:40
    logic [63:0] features;    // features that may be offered; the core masks what it cannot do
    logic [31:0] speed_mbps;
    logic [15:0] mtu;         // offered if not 0
    logic [15:0] queue_size;  // virtqueue size at reset, a power of two, at most MaxQueueSize
    logic        link_up;
    logic        rx_lossless; // 1: frames wait for buffers; 0: they wait a bounded time, then drop
  } strap_t;

endpackage
