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
    logic        marker; // the driver wants to know when this buffer is used
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
    logic        marker;
    qid_t        q;
    logic        publish;
    logic [15:0] id;
    logic [31:0] len;
  } vq_used_t;

  // ---------------------------------------------------------------- frames
  // An IP header that was found, of the version that the Ethernet type says.
  typedef struct packed {
    logic       ip;
    logic       v6;
    logic [1:0] tags;    // VLAN tags in front of it
    logic       sum_ok;  // the sum of an IPv4 header that is whole and not too short is right
  } hdr_found_t;

  // Hash types of receive-side scaling, as virtio numbers them (bits of hash_types) and as it
  // reports them (virtio 1.2, "Hash calculation for incoming packets").
  typedef struct packed {
    logic udp6;
    logic tcp6;
    logic ip6;
    logic udp4;
    logic tcp4;
    logic ip4;
  } hash_types_t;
  typedef enum logic [2:0] {
    HashNone = 3'd0,
    HashIp4  = 3'd1,
    HashTcp4 = 3'd2,
    HashUdp4 = 3'd3,
    HashIp6  = 3'd4,
    HashTcp6 = 3'd5,
    HashUdp6 = 3'd6
  } hash_report_e;

  // A word of a frame's headers and what the hash covers of it, in the order of the frame: the
  // addresses, then the ports. `first` comes with the first word that has any of it or is `last`.
  typedef struct packed {
    logic             first;
    logic             last;
    hash_report_e     report; // with last
    logic [3:0]       take;   // halves of the word
    logic [3:0][15:0] half;   // of 2 bytes, big endian, in the order of the frame
  } hash_word_t;

  // What is known of a received frame when it is whole.
  typedef struct packed {
    logic        sum_ok;     // its checksums are right
    hdr_found_t  found;
    logic [15:0] addr_hash;  // equal for frames between the same addresses
    logic [15:0] port_hash;  // equal for frames between the same ports
    logic        rss;        // there is a hash for receive-side scaling
    logic [6:0]  rss_low;    // its lowest bits
  } rx_verdict_t;

  // ---------------------------------------------------------------- steering and filters
  // Steering of received frames, as it is in use.
  typedef struct packed {
    logic        hash;         // hashes are computed
    logic        steer;        // and steer
    logic        bank;         // half of key and table that is in use; the other is staged
    hash_types_t types;
    logic [6:0]  mask;         // bits of the hash that choose an entry of the table
    logic [5:0]  unclassified; // pair of frames without a hash
    logic        follow;       // otherwise: flows are received where they were sent from
    logic [5:0]  period;       // flows age every 2^period cycles
  } steer_cfg_t;

  // A write into what is staged: an entry of the table, or four bytes of the key.
  typedef struct packed {
    logic        table_we;
    logic        key_we;
    logic [6:0]  row;
    logic [31:0] data;         // bits of the key in their order, the first in bit 31; or a pair
  } steer_write_t;

  // A flow of which a frame is sent, as the frames that answer it have it.
  typedef struct packed {
    logic        valid;
    logic [5:0]  pair;
    logic [15:0] addr_hash;
    logic [15:0] port_hash;
  } tx_flow_t;

  // Which frames are taken, as RX_FILTER has it.
  typedef struct packed {
    logic vlan;
    logic no_broadcast;
    logic no_unicast;
    logic no_multicast;
    logic all_unicast;
    logic all_multicast;
    logic promiscuous;
  } filter_cfg_t;

  // A write into the filters' tables: a row of addresses, or 32 VLANs.
  typedef struct packed {
    logic        address_we;
    logic        vlan_we;
    logic [6:0]  row;
    logic        used;
    logic [47:0] data;         // first byte of the address in bits 7:0; or VLANs in bits 31:0
  } filter_write_t;

  // A whole frame in a frame RAM. `ptr` is the byte address of the virtio header; the first byte of
  // the frame is VirtioHdrBytes further on.
  typedef struct packed {
    logic [15:0] ptr;
    logic [15:0] len;    // bytes of the frame, without header and FCS
    rx_verdict_t verdict;
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

  // ---------------------------------------------------------------- large receive offload
  // Settings, as the window has them. `gap` and `hold` count cycles of the time base.
  typedef struct packed {
    logic        strict;    // segments are merged, by the strict rules
    logic        relaxed;   // or by the relaxed ones; otherwise nothing is
    logic [23:0] gap;       // since the last segment
    logic [23:0] hold;      // since the first
    logic [15:0] max_bytes; // of a merged packet, from its IP header on
    logic [6:0]  low_water; // fewer buffers than this are few
  } lro_cfg_t;

  // Why a unit was closed: a row of the rule table, or a limit of the card. Where several hold it
  // is the first of this list.
  typedef enum logic [4:0] {
    // By the arriving frame alone.
    LroUntrusted   = 5'd0,   // row 12
    LroIpOptions   = 5'd1,   // row 2
    LroFragment    = 5'd2,   // row 3
    LroExtension   = 5'd3,   // row 9
    LroMalformed   = 5'd4,   // row 11
    LroTrailer     = 5'd5,   // row 10
    LroSum         = 5'd6,   // rows 13 and 14
    LroCanonical   = 5'd7,   // row 15
    LroControl     = 5'd8,   // rows 19 to 21 and 23
    LroEmpty       = 5'd9,   // row 29
    LroFirstBuffer = 5'd10,  // the headers do not fit the first descriptor
    // By comparison with what is held.
    LroMoved       = 5'd11,  // the flow comes to another queue now
    LroHeader      = 5'd12,  // rows 4, 6 to 8, 16, 17, 22, 24 to 28, 32 to 35: some byte differs
    LroSequence    = 5'd13,  // row 31
    LroId          = 5'd14,  // row 5
    LroLarger      = 5'd15,  // row 37
    LroLength      = 5'd16,  // row 38
    LroBuffers     = 5'd17,  // row 39
    // With the segment in it.
    LroPush        = 5'd18,  // row 18
    LroSmaller     = 5'd19,  // row 36
    // Nothing to do with the flow.
    LroEvicted     = 5'd20,  // row 40
    LroGap         = 5'd21,  // row 41
    LroHold        = 5'd22,  // row 41
    LroLowWater    = 5'd23,
    LroNoBuffer    = 5'd24,
    LroStopped     = 5'd25   // row 41: a setting changes, or the link goes down
  } lro_cause_e;

  // What LRO tells the counters, at most one of each a cycle.
  typedef struct packed {
    logic       closed;
    lro_cause_e cause;    // with closed
    logic       opened;
    logic       merged;   // a segment was appended
  } lro_event_t;

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
